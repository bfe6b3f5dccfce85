/** Log probabilities of the Ollama API. */
import type { SampledToken, TokenLogprob } from '../../events.ts'
import { areTokens } from '../../request-limits.ts'
import { readArray, readRecord, readString } from '../response-fields.ts'
import { invalidResponse } from '../upstream-errors.ts'

/** The server does not say the ids of tokens. */
const unknownId = -1

export const readLogprobs = (value: unknown): readonly SampledToken[] =>
  readArray(value, '`logprobs`').map((entry) => {
    const { top_logprobs: top } = readRecord(entry, 'a logprob')
    return { ...toToken(entry), top: top ? readArray(top, '`top_logprobs`').map(toToken) : [] }
  })

function toToken(value: unknown): TokenLogprob {
  const { token, logprob, bytes } = readRecord(value, 'a logprob')
  const text = readString(token, '`token`')
  if (typeof logprob !== 'number') throw invalidResponse('`logprob` is no number')
  return { id: unknownId, text, bytes: areTokens(bytes) ? bytes : [...Buffer.from(text)], logprob }
}
