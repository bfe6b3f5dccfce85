/**
 * Fields for the end of a prompt. Shape: vLLM, "Chat API, extra parameters". llama.cpp's server also takes them, with the
 * part to continue as a text.
 */
import { z } from 'zod'
import type { Message, PromptEnd } from '../../../engine/request.ts'
import { isContinuable } from '../../../engine/request-input.ts'
import { invalidRequest } from '../../../errors.ts'
import { optional, unsupported } from '../../fields.ts'

export const promptEndFields = {
  add_generation_prompt: optional(z.boolean()),
  continue_final_message: optional(
    z
      .union([z.boolean(), z.enum(['content', 'reasoning_content'])], {
        error: "expected true, false or 'content'.",
      })
      .refine((part) => part !== 'reasoning_content', unsupported('Continuing the reasoning of a message')),
  ),
}
type PromptEndFields = z.output<z.ZodObject<typeof promptEndFields>>

/**
 * Returns the end of the prompt if the request specifies it. Throws `invalid_request` for fields that contradict each
 * other, and for a last message that cannot be continued.
 */
export function toPromptEnd(
  { add_generation_prompt: startsAnswer, continue_final_message: continues }: PromptEndFields,
  messages: readonly Message[],
): { promptEnd?: PromptEnd } {
  if (startsAnswer === undefined && continues === undefined) return {}
  if (!continues) return { promptEnd: startsAnswer === false ? 'none' : 'generation-prompt' }
  if (startsAnswer) throw cannotContinue("it cannot be true together with 'add_generation_prompt'.")
  if (!isContinuable(messages))
    throw cannotContinue('the last message must be one of the assistant, without tool calls.')
  return { promptEnd: 'continue' }
}

const cannotContinue = (reason: string): Error =>
  invalidRequest(`Invalid 'continue_final_message': ${reason}`, {
    param: 'continue_final_message',
    issue: 'value',
  })
