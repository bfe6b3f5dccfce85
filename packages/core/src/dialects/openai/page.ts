/** Lists and their parameters. Shape: OpenAI API reference, "List batches" and "List files". */
import { z } from 'zod'
import type { HttpRequest } from '../../http/message.ts'
import { integerFrom } from '../fields.ts'
import { parse } from '../parse.ts'
import { formatIssue } from './errors.ts'

/** Throws an `LlmError` `invalid_request`. @param maxLimit largest page */
export const parsePage = (
  { query }: Pick<HttpRequest, 'query'>,
  maxLimit: number,
): { readonly limit?: number | undefined; readonly after?: string | undefined } =>
  parse(
    z.object({
      limit: z
        .string()
        .transform((text) => (/^-?\d+$/.test(text) ? Number(text) : Number.NaN))
        .pipe(integerFrom(1, maxLimit))
        .optional(),
      after: z.string().optional(),
    }),
    { limit: query('limit'), after: query('after') },
    formatIssue,
  )

export const toList = (data: readonly { readonly id: string }[], hasMore: boolean): object => ({
  object: 'list',
  data,
  first_id: data.at(0)?.id ?? null,
  last_id: data.at(-1)?.id ?? null,
  has_more: hasMore,
})
