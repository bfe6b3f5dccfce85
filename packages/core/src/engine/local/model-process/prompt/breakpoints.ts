/**
 * Locates the breakpoints of a conversation in its prompt. A template may reorder the messages, and tokens
 * depend on the text after them. So a second conversation is rendered, which has marks at the breakpoints.
 * The breakpoints are where the second prompt differs.
 */
import type { Token } from 'node-llama-cpp'
import { LlmError } from '../../../../errors.ts'
import type { CacheLifetime, GenerateRequest } from '../../../request.ts'
import type { Breakpoint } from '../kv-cache/cache-plan.ts'
import type { RunContext } from '../run-context.ts'
import { locateMarks } from './mark-locations.ts'
import { isMark, type MarkedBreakpoint, markBreakpoints } from './marks.ts'
import { tokenizeInput, tokenizePrompt } from './prompt.ts'

/**
 * Finds the token positions of cache breakpoints, ascending and unique. A breakpoint inside a token moves to
 * the start of that token. Omits breakpoints that cannot be located, for example because the template rejects
 * the marked conversation.
 */
export async function findBreakpoints(
  request: GenerateRequest,
  prompt: readonly Token[],
  context: RunContext,
): Promise<readonly Breakpoint[]> {
  const { input } = request
  if (input.kind !== 'chat' || request.promptLogprobs) return []
  const { breakpoints, markedInput } = markBreakpoints(input)
  if (breakpoints.length === 0) return []
  context.progress.steps++
  const marked = await tokenizeInput(request, markedInput, context).catch(noneIfRejected)
  const locations = locateMarks(prompt, marked, isMark, context.model)
  const found = new Map<number, CacheLifetime>()
  for (const breakpoint of breakpoints) {
    const length = Math.min(locate(breakpoint, locations.of), prompt.length - 1)
    if (length > 0 && found.get(length) !== '1h') found.set(length, breakpoint.lifetime)
  }
  return [...found].map(([length, lifetime]) => ({ length, lifetime })).sort((a, b) => a.length - b.length)
}

/** Counts the tokens of a prompt that are cached for breakpoints of earlier calls. */
export async function countCachedTokens(request: GenerateRequest, context: RunContext): Promise<number> {
  const prompt = await tokenizePrompt(request, context)
  const breakpoints = await findBreakpoints(request, prompt, context)
  return context.model.runner.cachedLength({ tenant: context.tenant, prompt, breakpoints })
}

/** Returns the token position of the first of the marks that bound the prefix. */
function locate({ marks, behindSystem }: MarkedBreakpoint, positionOf: (mark: string) => number): number {
  const first = (all: readonly string[]): number => Math.min(...all.map(positionOf), positionOf(''))
  const position = first(marks)
  return behindSystem && position <= first(behindSystem.start) ? first(behindSystem.marks) : position
}

/** A template may reject the marked input. Then no shared prefix is known. */
function noneIfRejected(cause: unknown): readonly Token[] {
  if (LlmError.from(cause).code === 'invalid_request') return []
  throw cause
}
