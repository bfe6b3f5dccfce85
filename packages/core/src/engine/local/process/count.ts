/** How long a prompt is: its text and its tokens, as for an answer, but nothing is read. */
import { LlmError } from '../../../errors.ts'
import type { GenerateRequest } from '../../request.ts'
import type { Work } from './answer.ts'

/** Also of a prompt that is longer than the context. */
export async function countTokens(
  { input }: GenerateRequest,
  { model, renderer }: Pick<Work, 'model' | 'renderer'>,
): Promise<number> {
  const text = await renderer.render(model.template, input.messages)
  try {
    return (await model.tokenize(text)).length
  } catch (cause) {
    const { code, details } = LlmError.from(cause)
    if (code === 'context_length' && details.inputTokens !== undefined) return details.inputTokens
    throw cause
  }
}
