/** What fields of several dialects have in common. */
import { z } from 'zod'
import { optional, StopSequence } from '../models/modelfile/parameters.ts'
import { isRecord } from '../util/is-record.ts'

export { optional, StopSequence }

/** Refuses what is not built yet by its name. */
export const unsupported = (feature: string) => ({
  params: { issue: 'unsupported' },
  error: `${feature} is not supported yet.`,
})
/** A field that is not built yet may still say "none", in one of the ways clients do. */
export const unsupportedUnless = <Schema extends z.ZodType>(
  schema: Schema,
  feature: string,
  isNone: (value: z.output<Schema>) => boolean,
) => optional(schema.refine((value) => isNone(value as z.output<Schema>), unsupported(feature)))
export const isEmpty = ({ length }: readonly unknown[]): boolean => length === 0

/** Looked at no further. */
export const JsonObject = z.custom<Readonly<Record<string, unknown>>>(isRecord, {
  params: { issue: 'type', expected: 'object' },
  error: 'expected an object.',
})

/** By hand: zod calls what is beyond its own bounds a decimal, and of a text it does not say that a whole number was expected. */
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

/** What a client wrote, in a message to it: no megabytes, and no half character. */
export const truncateForError = (text: string): string => text.slice(0, 64).toWellFormed()

/** What the engine says of a field is said of the one that it came from. */
export const createFieldMapper =
  (mappings: readonly (readonly [neutral: RegExp, own: string])[]) =>
  (param: string): string =>
    mappings.reduce((name, [neutral, own]) => name.replace(neutral, own), param)

type Defined<Values> = { [Key in keyof Values]?: Exclude<Values[Key], undefined> }

/** Without what is undefined. */
export const omitUndefined = <Values extends object>(values: Values): Defined<Values> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Defined<Values>
