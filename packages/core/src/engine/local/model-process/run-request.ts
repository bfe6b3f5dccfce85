/** One answer: prompt text, tokens, prefill, then token after token until something ends it. */
import { randomBytes } from 'node:crypto'
import type { Token } from 'node-llama-cpp'
import { hasControlTokens, parseOutput } from '../../../template/output.ts'
import { buildOutputConstraint } from '../../../template/output-constraint.ts'
import type { OutputPart } from '../../../template/output-part.ts'
import { StopMatcher } from '../../../template/stop.ts'
import { detectFamily } from '../../../template/tool-calls/detect.ts'
import { type FinishReason, type GenerateEvent, type SampledToken, uncached } from '../../events.ts'
import { callableTools, type GenerateRequest } from '../../request.ts'
import { Detokenizer } from './decoding/detokenize.ts'
import { LogprobAligner } from './decoding/logprob-aligner.ts'
import { createPromptTokenMapper } from './decoding/prompt-logprobs.ts'
import { toSamplingParams } from './decoding/sampling.ts'
import { toSampledToken } from './decoding/token-text.ts'
import type { CacheUsage } from './kv-cache/cache-plan.ts'
import { findBreakpoints } from './prompt/breakpoints.ts'
import { countAddedTokens, tokenizePrompt } from './prompt/prompt.ts'
import { parseRequestTemplate, resolveReasoning, templateProfileOf } from './prompt/template-profile.ts'
import type { RunContext } from './run-context.ts'

/** Returns quietly, without an `end`, when the signal aborts. */
export async function runRequest(
  original: GenerateRequest,
  context: RunContext,
  emit: (event: GenerateEvent) => void,
): Promise<void> {
  const { model, tenant, background, signal, isBackpressured } = context
  const reasoning = resolveReasoning(original, parseRequestTemplate(original.input))
  const request = { ...original, ...(reasoning !== undefined && { reasoning }) }
  const prompt = await tokenizePrompt(request, context)
  const breakpoints = await findBreakpoints(request, prompt, context)
  let startedAt = 0
  let firstTokenAt = 0
  let cacheUsage: CacheUsage = { reusedTokens: 0, ...uncached }
  const remainingContext = model.contextSize - prompt.length
  const maxTokens = Math.min(request.maxTokens ?? Number.POSITIVE_INFINITY, remainingContext)
  const { input } = request
  const profile = templateProfileOf(input, model)
  const expected = {
    ...profile,
    family: detectFamily(profile.template),
    prompt: model.detokenizeWithSpecial(prompt.slice(-tailTokens)),
    reasoning: request.reasoning !== undefined,
    tools: callableTools(input),
    isConstrained:
      request.format !== undefined || (input.kind === 'chat' && input.toolChoice?.mode === 'required'),
  }
  const constraint = buildOutputConstraint(request, expected)
  const source = constraint && (await context.grammars.build(constraint, signal))
  const grammar = source === undefined ? undefined : await model.compileGrammar(source)
  const isJson = constraint !== undefined && constraint.format?.type !== 'grammar'
  const parser = parseOutput(expected)
  // What a grammar has let pass is said, also where a token stands for it that is no text elsewhere.
  const detokenizer = new Detokenizer(model, prompt, hasControlTokens(expected) || grammar !== undefined)
  const stops = new StopMatcher(request.stop)
  const sampled: Token[] = []
  const { logprobs } = request
  const aligner = logprobs === undefined ? undefined : new LogprobAligner<SampledToken>()
  let reason: FinishReason = 'stop'
  let stopSequence: string | undefined
  let reportedTokens = 0

  const isSingleCall = input.kind === 'chat' && input.toolChoice?.parallel === false
  let callCount = 0
  let isCallLimitReached = false
  const incompleteCalls: number[] = []
  const emitParts = (parts: readonly OutputPart[]): void => {
    for (const part of parts) {
      // Of those whose calls have no mark no grammar keeps the second away.
      isCallLimitReached ||= isSingleCall && part.type === 'tool-call' && callCount > 0
      if (isCallLimitReached) return
      if (part.type === 'tool-call') {
        callCount++
        emit({ ...part, id: `call_${randomBytes(12).toString('hex')}` })
      } else if (part.type === 'tool-incomplete') incompleteCalls.push(part.index)
      else {
        const tokens = sampled.length - reportedTokens
        reportedTokens = sampled.length
        if (part.type === 'tool-arguments') {
          emit({ ...part, tokens })
          aligner?.skip()
        } else emit({ ...part, tokens, ...(aligner && { logprobs: aligner.take(part.text) }) })
      }
    }
  }

  const toPromptTokens =
    request.promptLogprobs && createPromptTokenMapper(prompt, countAddedTokens(request, prompt, model), model)
  const outcome = await model.runner.run({
    prompt,
    breakpoints,
    sampling: {
      ...toSamplingParams(request.sampling ?? {}, model),
      isJson,
      ...(logprobs !== undefined && { logprobs }),
    },
    grammar,
    isDeterministic: typeof request.sampling?.seed === 'number',
    maxTokens,
    tenant,
    background,
    signal,
    isBackpressured,
    onStart: (usage, divergesAt) => {
      cacheUsage = usage
      startedAt = performance.now()
      const { fingerprint } = model
      const divergence =
        divergesAt === undefined
          ? undefined
          : {
              tokens: divergesAt,
              behind: model.detokenizeWithSpecial(
                prompt.slice(Math.max(0, divergesAt - tailTokens), divergesAt),
              ),
            }
      emit({
        type: 'start',
        model: request.model,
        inputTokens: prompt.length,
        ...cacheUsage,
        fingerprint,
        ...(divergence && { divergence }),
      })
    },
    onCacheChange: (actual) => {
      cacheUsage = actual
    },
    onPromptLogprobs: toPromptTokens && ((odds) => emit({ type: 'prompt', tokens: toPromptTokens(odds) })),
    onToken: (token, odds) => {
      firstTokenAt ||= performance.now()
      sampled.push(token)
      const completed = detokenizer.push(token)
      if (odds) aligner?.push(toSampledToken(token, odds, model), completed)
      const { text, stop } = stops.push(completed)
      if (text !== '') emitParts(parser.push(text))
      stopSequence = stop
      return stop === undefined && !isCallLimitReached
    },
  })
  if (outcome === 'aborted') return
  if (outcome === 'limit') reason = sampled.length === request.maxTokens ? 'length' : 'context'
  if (stopSequence === undefined) {
    const { text, stop } = stops.push(detokenizer.flush())
    stopSequence = stop
    const rest = stop === undefined ? text + stops.flush() : text
    if (rest !== '') emitParts(parser.push(rest))
    if (stop !== undefined) reason = 'stop'
  }
  emitParts(parser.flush())

  // The library keeps it for itself; without it the next message would stand inside of this one.
  const endTokens =
    reason === 'stop' && stopSequence === undefined && model.eot !== undefined ? [model.eot] : []
  const endsWithCalls =
    reason === 'stop' && stopSequence === undefined && callCount > 0 && incompleteCalls.length === 0
  const endedAt = performance.now()
  emit({
    type: 'end',
    reason: endsWithCalls ? 'tool-calls' : reason,
    ...(incompleteCalls.length > 0 && { incompleteCalls }),
    ...(stopSequence !== undefined && { stopSequence }),
    usage: { inputTokens: prompt.length, ...cacheUsage, outputTokens: sampled.length },
    timings: {
      loadMs: 0,
      promptMs: (firstTokenAt || endedAt) - startedAt,
      generateMs: firstTokenAt ? endedAt - firstTokenAt : 0,
    },
    ...(request.returnTokens && { tokens: [...prompt, ...sampled, ...endTokens] }),
  })
}

/** Enough of a prompt to see whether its template opens what the answer goes on with. */
const tailTokens = 16
