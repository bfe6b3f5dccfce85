/** Parameters of pages. Shape: Anthropic API reference, "List Models". */
import { z } from 'zod'
import { invalidRequest } from '../../errors.ts'
import type { HttpRequest } from '../../http/message.ts'
import { integerFrom } from '../fields.ts'
import { parse } from '../parse.ts'
import { formatIssue } from './errors.ts'

/** Throws an `LlmError` `invalid_request`. */
export function parsePage({ query }: Pick<HttpRequest, 'query'>): z.output<typeof Page> {
  const page = parse(
    Page,
    { limit: query('limit'), after_id: query('after_id'), before_id: query('before_id') },
    formatIssue,
  )
  if (page.after_id !== undefined && page.before_id !== undefined)
    throw invalidRequest('before_id: Only one of before_id and after_id may be given', { param: 'before_id' })
  return page
}

const Page = z.object({
  limit: z
    .string()
    .default('20')
    .transform((text) => (/^-?\d+$/.test(text) ? Number(text) : Number.NaN))
    .pipe(integerFrom(1, 1_000)),
  after_id: z.string().optional(),
  before_id: z.string().optional(),
})
