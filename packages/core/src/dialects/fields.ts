/** Schema helpers that several dialects share. */
import { z } from 'zod'
import type { Sampling } from '../engine/request.ts'
import { optional, StopSequence } from '../models/modelfile/parameters.ts'
import { isRecord } from '../util/is-record.ts'

export { optional, StopSequence }

/** zod issue for a feature that is not implemented. */
export const unsupported = (feature: string) => ({
  params: { issue: 'unsupported' },
  error: `${feature} is not supported yet.`,
})
/** Rejects a field that is not implemented, unless its value disables the feature. */
export const unsupportedUnless = <Schema extends z.ZodType>(
  schema: Schema,
  feature: string,
  isNone: (value: z.output<Schema>) => boolean,
) => optional(schema.refine((value) => isNone(value as z.output<Schema>), unsupported(feature)))
export const isEmpty = ({ length }: readonly unknown[]): boolean => length === 0

/** A JSON object with any fields. */
export const JsonObject = z.custom<Readonly<Record<string, unknown>>>(isRecord, {
  params: { issue: 'type', expected: 'object' },
  error: 'expected an object.',
})

/**
 * Schema of an integer. `z.int()` is not used: zod reports the same errors for the bounds of integers and of
 * decimals. Given a text, zod would report the expected type `number` instead of `int`.
 */
export const integerFrom = (min: number, max: number = Number.MAX_SAFE_INTEGER) =>
  z
    .custom<number>((value) => Number.isInteger(value), {
      params: { issue: 'type', expected: 'int' },
      error: 'expected a whole number.',
    })
    .refine((value) => value >= min, {
      params: { issue: 'integer_too_small', limit: min },
      error: `expected a whole number from ${min} up.`,
    })
    .refine((value) => value <= max, {
      params: { issue: 'integer_too_big', limit: max },
      error: `expected a whole number up to ${max}.`,
    })

/** Shortens a client's text for an error message. A split surrogate pair becomes U+FFFD. */
export const truncateForError = (text: string): string => text.slice(0, 64).toWellFormed()

/** Creates a function that maps the engine's field names in errors to the dialect's. */
export const createFieldMapper =
  (mappings: readonly (readonly [neutral: RegExp, own: string])[]) =>
  (param: string): string =>
    mappings.reduce((name, [neutral, own]) => name.replace(neutral, own), param)

const samplingNames = {
  temperature: 'temperature',
  topP: 'top_p',
  topK: 'top_k',
  minP: 'min_p',
  seed: 'seed',
  repeatPenalty: 'repeat_penalty',
  repeatLastN: 'repeat_last_n',
  presencePenalty: 'presence_penalty',
  frequencyPenalty: 'frequency_penalty',
  logitBias: 'logit_bias',
  dry: 'dry_multiplier',
  xtc: 'xtc_probability',
  ignoreEos: 'ignore_eos',
  minTokens: 'min_tokens',
} as const satisfies Record<keyof Sampling, string>

/**
 * Maps fields that an upstream server may lack. All APIs here have the same names for them.
 *
 * @param samplingPath path of the object with the sampling fields
 */
export const upstreamMappings = (samplingPath = '') => [
  ...Object.entries(samplingNames).map(
    ([neutral, own]) => [new RegExp(`^sampling\\.${neutral}$`), samplingPath + own] as const,
  ),
  [/^toolChoice(?=$|\.)/, 'tool_choice'] as const,
]

type Defined<Values> = { [Key in keyof Values]?: Exclude<Values[Key], undefined> }

/** Removes fields that are undefined. */
export const omitUndefined = <Values extends object>(values: Values): Defined<Values> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Defined<Values>
