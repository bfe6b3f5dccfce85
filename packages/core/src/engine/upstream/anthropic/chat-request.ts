/** Translates requests to bodies of the Anthropic API. Shape: Anthropic API reference, "Create a Message". */
import type { ChatInput, GenerateRequest, Message, OutputFormat, Tool } from '../../request.ts'
import { callableTools, toTemplateMessages } from '../../request-input.ts'
import { unlimitedTokens } from '../../request-limits.ts'
import { type LackedField, readEffort, rejectFields } from '../lacked-fields.ts'
import { unsupportedByUpstream } from '../upstream-errors.ts'
import { toCacheControl, toTurns } from './messages.ts'

/** `max_tokens` of a request without a limit, since the API requires one. Older models allow no more. */
const defaultMaxTokens = 8_192
/** The smallest that the API accepts. */
const minThinkingBudget = 1_024
const efforts = ['low', 'medium', 'high', 'xhigh', 'max'] as const

const lackedFields: readonly LackedField[] = [
  ...(['sampling.minP', 'sampling.seed', 'sampling.repeatPenalty', 'sampling.presencePenalty'] as const),
  ...(['sampling.frequencyPenalty', 'sampling.logitBias', 'sampling.dry', 'sampling.xtc'] as const),
  ...(['sampling.ignoreEos', 'sampling.minTokens', 'logprobs', 'promptLogprobs'] as const),
  ...(['template', 'promptEnd'] as const),
]

/** Body of `POST /v1/messages`. With `maxTokens: 0`, the answer is no stream: the server only caches the prompt. */
export function toMessagesBody(request: GenerateRequest) {
  rejectFields(request, lackedFields)
  const { sampling: { temperature = 1, topP = 1, topK } = {}, stop } = request
  if (temperature > 1) throw unsupportedByUpstream('a temperature above 1', 'sampling.temperature')
  const maxTokens = toMaxTokens(request)
  return {
    ...toPrompt(request, maxTokens),
    max_tokens: maxTokens,
    stream: maxTokens > 0,
    // Some models reject the default values, too.
    ...(temperature !== 1 && { temperature }),
    ...(topP !== 1 && { top_p: topP }),
    ...(topK && { top_k: topK }),
    ...(stop?.length && { stop_sequences: stop }),
  }
}

/** Body of `POST /v1/messages/count_tokens`. */
export const toCountBody = (request: GenerateRequest): object => toPrompt(request, toMaxTokens(request))

function toMaxTokens({ maxTokens, defaultMaxTokens: byDefault }: GenerateRequest): number {
  const limit = maxTokens ?? byDefault
  return limit === undefined || limit === unlimitedTokens ? defaultMaxTokens : limit
}

function toPrompt(request: GenerateRequest, maxTokens: number): object {
  const { model, input, format } = request
  const { system, messages } = toTurns(readMessages(input))
  const effort = readEffort(request, efforts)
  const outputConfig = { ...(effort && { effort }), ...(format && { format: toFormat(format) }) }
  return {
    model,
    ...(system.length > 0 && { system }),
    messages,
    ...(input.kind === 'chat' && toTools(input)),
    ...toThinking(request.reasoning, effort !== undefined, maxTokens),
    ...(Object.keys(outputConfig).length > 0 && { output_config: outputConfig }),
  }
}

function readMessages(input: GenerateRequest['input']): readonly Message[] {
  if (input.kind === 'infill') throw unsupportedByUpstream('infill', 'suffix')
  if (input.kind === 'text') {
    if (input.template === false) throw unsupportedByUpstream('prompts without a template', 'prompt')
    if (input.prompt.some((piece) => typeof piece !== 'string'))
      throw unsupportedByUpstream('prompts of token ids', 'prompt')
  }
  return toTemplateMessages(input)
}

/**
 * Models either reason as much as the effort says, or within a budget. So a request that names an effort is for one of the
 * first kind.
 */
function toThinking(reasoning: GenerateRequest['reasoning'], hasEffort: boolean, maxTokens: number): object {
  if (!reasoning || (reasoning === 'auto' && !hasEffort)) return {}
  if (hasEffort) return { thinking: { type: 'adaptive' } }
  const budget = Math.min(Math.max(minThinkingBudget, Math.floor(maxTokens / 2)), maxTokens - 1)
  return { thinking: { type: 'enabled', budget_tokens: budget } }
}

function toFormat(format: OutputFormat): object {
  if (format.type === 'json-schema' && typeof format.schema === 'object')
    return { type: 'json_schema', schema: format.schema }
  throw unsupportedByUpstream('this output format', 'format')
}

function toTools(input: ChatInput): object {
  const { tools = [], toolChoice: { mode = 'auto', names, parallel } = {} } = input
  if (tools.length === 0) return {}
  const isNamed = mode === 'required' && names?.length === 1
  const listed = mode === 'none' || isNamed ? tools : callableTools(input)
  const isSingle = parallel === false && mode !== 'none'
  const type = mode === 'required' ? (isNamed ? 'tool' : 'any') : mode
  return {
    tools: listed.map(toTool),
    ...((mode !== 'auto' || isSingle) && {
      tool_choice: {
        type,
        ...(isNamed && { name: names[0] }),
        ...(isSingle && { disable_parallel_tool_use: true }),
      },
    }),
  }
}

const toTool = ({ name, description, parameters, strict, cache }: Tool): object => ({
  name,
  ...(description !== undefined && { description }),
  // The API requires the type.
  input_schema: { type: 'object', ...parameters },
  ...(strict && { strict }),
  ...toCacheControl(cache),
})
