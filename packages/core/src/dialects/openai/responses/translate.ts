/** Translates requests of the Responses API to engine requests. */
import type { GenerateRequest } from '../../../engine/request.ts'
import { toPromptEnd } from '../extensions/prompt-end.ts'
import { type FormatNames, toFormat } from '../formats.ts'
import { toCommon, toLimit, toReasoning, toTemplateOptions } from '../translate.ts'
import { toMessages } from './items.ts'
import type { RequestItems } from './request-items.ts'
import { type ResponsesRequest, wantsLogprobs } from './schema.ts'
import { toTools } from './tools.ts'

export const responseFormatNames: FormatNames = { format: 'text.format', schema: 'text.format.schema' }

/** Throws the errors of `toMessages`, `toPromptEnd` and `toTools`. */
export function toGenerateRequest(body: ResponsesRequest, items: RequestItems): GenerateRequest {
  const { instructions, generate } = body
  const maxTokens = generate === false ? 1 : toLimit(body, body.max_output_tokens)
  const thinking = {
    reasoning_effort: body.reasoning?.effort,
    chat_template_kwargs: body.chat_template_kwargs,
    enable_thinking: body.enable_thinking,
    reasoning_format: body.reasoning_format,
  }
  const tools = toTools(body)
  const format = toFormat({ ...body, format: body.text?.format }, responseFormatNames, tools.toolChoice?.mode)
  const system = { role: 'system', content: [{ type: 'text', text: instructions ?? '' }] } as const
  const messages = [...(instructions ? [system] : []), ...toMessages(items.history, items.input)]
  return {
    ...toCommon(body),
    input: {
      kind: 'chat',
      messages,
      ...toPromptEnd(body, messages),
      ...tools,
      ...toTemplateOptions(thinking),
    },
    ...toReasoning(thinking),
    ...(maxTokens !== undefined && { maxTokens }),
    ...(format && { format }),
    ...(wantsLogprobs(body) && { logprobs: body.top_logprobs ?? 0 }),
    ...(body.truncation === 'auto' && { overflow: 'truncate' }),
  }
}
