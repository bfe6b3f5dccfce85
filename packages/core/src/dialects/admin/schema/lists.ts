/** Schemas that several routes use. */
import { z } from 'zod'
import { maxPageSize } from '../../../accounts/page.ts'

export const timestamp = z.iso.datetime()
export const count = z.int().min(0)
export const nanoUsd = z.string().regex(/^\d+$/).describe('Billionths of a dollar.')

export const Limit = z
  .int()
  .min(1)
  .max(maxPageSize)
  .describe(`Maximum number of entries. Default: ${maxPageSize}.`)
export const After = z.string().describe('`next` of the previous page. Default: the first page.')

export const pageOf = <Item extends z.ZodType>(item: Item) =>
  z.strictObject({
    data: z.array(item),
    next: z.string().optional().describe('Value of `after` for the next page. Absent in the last page.'),
  })

export const listOf = <Item extends z.ZodType>(item: Item) => z.strictObject({ data: z.array(item) })
