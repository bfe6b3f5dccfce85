/** Lists and their parameters. Shape: OpenAI API reference, "List batches", "List files" and "List items". */
import { z } from 'zod'
import { invalidRequest } from '../../errors.ts'
import type { HttpRequest } from '../../http/message.ts'
import { integerFrom, truncateForError } from '../fields.ts'
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

/**
 * Returns one page of items, the newest first unless the query says otherwise. Throws `invalid_request` for an
 * invalid query.
 *
 * @param items the oldest first
 */
export function toItemPage(request: HttpRequest, items: readonly { readonly id: string }[]): object {
  const { limit = 20, after } = parsePage(request, 100)
  const { order } = parse(Order, { order: request.query('order') }, formatIssue)
  const ordered = order === 'asc' ? items : items.toReversed()
  const index = after === undefined ? -1 : ordered.findIndex(({ id }) => id === after)
  if (after !== undefined && index < 0)
    throw invalidRequest(`Invalid 'after': there is no item '${truncateForError(after)}' in the list.`, {
      param: 'after',
      issue: 'value',
    })
  const page = ordered.slice(index + 1, index + 1 + limit)
  return toList(page, index + 1 + limit < ordered.length)
}

const Order = z.object({ order: z.enum(['asc', 'desc']).default('desc') })
