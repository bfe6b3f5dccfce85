/** Fields that several dialects have. */
import { z } from 'zod'
import { limits } from '../engine/request.ts'

/** Every optional field may be null, which means absent. */
export const optional = <Schema extends z.ZodType>(schema: Schema) =>
  schema
    .nullable()
    .transform((value) => value ?? undefined)
    .optional()

/** Refuses what is not built yet by its name. */
export const unsupported = (what: string) => ({
  params: { issue: 'unsupported' },
  error: `${what} is not supported yet.`,
})
/** A field that is not built yet may still say "none", in one of the ways clients do. */
export const notYet = <Schema extends z.ZodType>(
  schema: Schema,
  what: string,
  isNone: (value: z.output<Schema>) => boolean,
) => optional(schema.refine((value) => isNone(value as z.output<Schema>), unsupported(what)))
export const isEmpty = ({ length }: readonly unknown[]): boolean => length === 0

/** By hand: zod calls what is beyond its own bounds a decimal, and of a text it does not say that a whole number was expected. */
export const whole = (least: number, most: number = Number.MAX_SAFE_INTEGER) =>
  z
    .custom<number>((value) => Number.isInteger(value), {
      params: { issue: 'type', expected: 'int' },
      error: 'expected a whole number.',
    })
    .refine((value) => value >= least, {
      params: { issue: 'integer_too_small', limit: least },
      error: `expected a whole number from ${least} up.`,
    })
    .refine((value) => value <= most, {
      params: { issue: 'integer_too_big', limit: most },
      error: `expected a whole number up to ${most}.`,
    })

/** Half a character would match inside of others, and leave their other half in the answer. */
export const StopSequence = z
  .string()
  .max(limits.stopLength)
  .refine((text) => text.isWellFormed(), 'has half a character, a lone surrogate.')
