import type { Token } from 'node-llama-cpp'
import { hasControlTokens, parseOutput } from '../../../../template/output.ts'
import { buildOutputConstraint } from '../../../../template/output-constraint.ts'
import type { OutputParser } from '../../../../template/output-part.ts'
import { detectFamily } from '../../../../template/tool-calls/detect.ts'
import type { GenerateRequest } from '../../../request.ts'
import { callableTools } from '../../../request-input.ts'
import type { CompiledGrammar } from '../decoding/decoder.ts'
import { Detokenizer } from '../decoding/detokenize.ts'
import type { Breakpoint } from '../kv-cache/cache-plan.ts'
import type { RunContext } from '../run-context.ts'
import { findBreakpoints } from './breakpoints.ts'
import { tokenizePrompt } from './prompt.ts'
import { parseRequestTemplate, resolveReasoning, templateProfileOf } from './template-profile.ts'
import { resolveTextBiases } from './text-biases.ts'

/** A request that is ready for decoding. */
export interface PreparedRun {
  readonly request: GenerateRequest
  readonly prompt: readonly Token[]
  readonly breakpoints: readonly Breakpoint[]
  /** Maximum length of the output in tokens, limited by the request and by the room in the context. */
  readonly maxTokens: number
  readonly grammar: CompiledGrammar | undefined
  /** Whether the grammar describes JSON. Reasoning and tool calls may surround the JSON. */
  readonly isJson: boolean
  readonly parser: OutputParser
  readonly detokenizer: Detokenizer
}

/** Number of tokens at the end of a prompt that show whether its template opens a reasoning block. */
export const tailTokens = 16

/**
 * Throws an `LlmError`: `invalid_request` for an unusable template or output constraint, `context_length` if
 * the prompt is too long.
 */
export async function prepareRun(original: GenerateRequest, context: RunContext): Promise<PreparedRun> {
  const { model } = context
  const reasoning = resolveReasoning(original, parseRequestTemplate(original.input))
  const sampling = original.sampling && (await resolveTextBiases(original.sampling, context))
  const request = {
    ...original,
    ...(sampling && { sampling }),
    ...(reasoning !== undefined && { reasoning }),
  }
  const prompt = await tokenizePrompt(request, context)
  const breakpoints = await findBreakpoints(request, prompt, context)
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
  const source = constraint && (await context.grammars.build(constraint, context.budget))
  const grammar = source === undefined ? undefined : await model.compileGrammar(source, context.budget)
  return {
    request,
    prompt,
    breakpoints,
    maxTokens: Math.min(request.maxTokens ?? Number.POSITIVE_INFINITY, model.contextSize - prompt.length),
    grammar,
    isJson: constraint !== undefined && isJson(constraint.format),
    parser: parseOutput(expected),
    // A grammar may match text for which the vocabulary has a control token.
    detokenizer: new Detokenizer(model, prompt, hasControlTokens(expected) || grammar !== undefined),
  }
}

/** Whether an answer in this format is JSON. Without a format, the constraint is that of tool calls. */
const isJson = (format: GenerateRequest['format']): boolean =>
  format === undefined || format.type === 'json' || format.type === 'json-schema'
