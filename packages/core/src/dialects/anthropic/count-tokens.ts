/** Counts tokens. Shape: Anthropic API reference, "Count tokens in a Message". */
import { json } from '../../http/respond.ts'
import type { Handler } from '../dialect.ts'
import { parse } from '../parse.ts'
import { formatIssue } from './errors.ts'
import { CountTokensRequest } from './schema.ts'
import { toPrompt } from './translate.ts'

/** `POST /v1/messages/count_tokens`: counts exactly, with the model's chat template and tokenizer. */
export const countTokens: Handler = async ({ request, llm }) => {
  const body = parse(CountTokensRequest, await request.json(), formatIssue)
  const count = await llm.countTokens(toPrompt(body), { signal: request.signal })

  return json({ input_tokens: count })
}
