/**
 * The field `logit_bias`: an object of token ids and biases, as in OpenAI's API. As in llama.cpp's server, it can also be a
 * list of pairs, a text can stand for its tokens, and `false` bans a token.
 */
import { z } from 'zod'
import { limits } from '../../engine/request-limits.ts'
import type { Issue } from '../../errors.ts'
import { isRecord } from '../../util/is-record.ts'

type Pair = readonly [token: number | string, bias: number]
type FieldError = readonly [issue: Issue, message: string]

/** A custom check that stops at the first invalid entry, since zod would report hundreds of thousands. */
export const LogitBias = z
  .custom<unknown>((given) => Array.isArray(given) || isRecord(given), {
    params: { issue: 'type' },
    error: 'expected an object of token ids and numbers, or a list of pairs.',
  })
  .refine(
    (given) => Object.keys(given as object).length <= limits.biases,
    `expected at most ${limits.biases} entries.`,
  )
  .transform((given, context): readonly Pair[] => {
    const isList = Array.isArray(given)
    const entries = isList ? given.entries() : Object.entries(given as object)
    const pairs: Pair[] = []
    let texts = 0
    for (const [key, entry] of entries) {
      const [token, bias] = isList ? (Array.isArray(entry) ? entry : []) : [toToken(key as string), entry]
      if (typeof token === 'string') texts++
      const wrong = findTokenError(token) ?? findBiasError(bias) ?? findCountError(texts)
      if (wrong) {
        const [issue, message] = wrong
        context.issues.push({ code: 'custom', path: [key], params: { issue }, message, input: entry })
        return z.NEVER
      }
      pairs.push([token, bias === false ? -limits.bias : bias])
    }
    return pairs
  })

/** A key that is a number is the id of a token, and any other key a text. */
const toToken = (key: string): number | string =>
  key.trim() !== '' && Number.isFinite(Number(key)) ? Number(key) : key

function findTokenError(token: unknown): FieldError | undefined {
  if (typeof token === 'string')
    return token.length > 0 && token.length <= limits.biasTextLength
      ? undefined
      : ['value', `expected a text of 1 to ${limits.biasTextLength} characters.`]
  const isId = Number.isInteger(token) && (token as number) >= 0 && (token as number) <= limits.int32
  return isId ? undefined : ['value', 'expected the id of a token, or a text.']
}

function findBiasError(bias: unknown): FieldError | undefined {
  if (bias === false) return undefined
  if (typeof bias !== 'number' || !Number.isFinite(bias)) return ['type', 'expected a number.']
  if (bias > limits.bias) return ['decimal_too_big', `expected a number up to ${limits.bias}.`]
  if (bias < -limits.bias) return ['decimal_too_small', `expected a number from -${limits.bias} up.`]
  return undefined
}

const findCountError = (texts: number): FieldError | undefined =>
  texts > limits.biasTexts ? ['value', `expected at most ${limits.biasTexts} texts.`] : undefined
