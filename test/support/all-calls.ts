/** Reads all rows of the ledger, page by page. */
import type { Llm } from '@modelmount/core'

export type CallRow = Awaited<ReturnType<Llm['usage']['calls']>>[number]

export async function allCalls(llm: Llm): Promise<readonly CallRow[]> {
  const rows: CallRow[] = []
  for (let after: string | undefined, isMore = true; isMore; ) {
    const page = await llm.usage.calls({ limit: 1_000, ...(after !== undefined && { after }) })
    rows.push(...page)
    after = page.at(-1)?.id
    isMore = page.length === 1_000
  }
  return rows
}
