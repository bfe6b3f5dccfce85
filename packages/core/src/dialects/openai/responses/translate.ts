/** Translates requests of the Responses API to engine requests. */
import type { GenerateRequest, OutputFormat } from '../../../engine/request.ts'
import { toCommon, toReasoning, toTemplateOptions } from '../translate.ts'
import { toMessages } from './items.ts'
import { type ResponsesRequest, wantsLogprobs } from './schema.ts'
import { toTools } from './tools.ts'

/** Throws the errors of `toMessages` and `toTools`. */
export function toGenerateRequest(body: ResponsesRequest): GenerateRequest {
  const { instructions, max_output_tokens: maxTokens } = body
  const thinking = {
    reasoning_effort: body.reasoning?.effort,
    chat_template_kwargs: body.chat_template_kwargs,
  }
  const tools = toTools(body)
  // If a tool call is forced, the answer has no text that could have a format.
  const format = tools.toolChoice?.mode === 'required' ? undefined : toFormat(body)
  const system = { role: 'system', content: [{ type: 'text', text: instructions ?? '' }] } as const
  return {
    ...toCommon(body),
    input: {
      kind: 'chat',
      messages: [...(instructions ? [system] : []), ...toMessages(body.input)],
      ...tools,
      ...toTemplateOptions(thinking),
    },
    reasoning: toReasoning(thinking),
    ...(maxTokens !== undefined && { maxTokens }),
    ...(format && { format }),
    ...(wantsLogprobs(body) && { logprobs: body.top_logprobs ?? 0 }),
    ...(body.truncation === 'auto' && { overflow: 'truncate' }),
  }
}

/** Returns the output constraint. A schema is enforced even without `strict`. */
function toFormat({ grammar, text: { format } = {} }: ResponsesRequest): OutputFormat | undefined {
  if (grammar) return { type: 'grammar', source: grammar }
  if (!format || format.type === 'text') return undefined
  return format.type === 'json_object' ? { type: 'json' } : { type: 'json-schema', schema: format.schema }
}
