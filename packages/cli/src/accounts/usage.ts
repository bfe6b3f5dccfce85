/** Reports the usage of a server from its database. The server need not run. */
import { createLlm, type UsageQuery, type UsageRow } from '@modelmount/core'
import { currentDatabase } from '../database.ts'
import { table } from '../format/table.ts'
import { asJson, noteNextPage } from '../output.ts'

export interface UsageOptions {
  readonly by: UsageQuery['by']
  readonly order?: UsageQuery['order']
  readonly from?: Date
  readonly to?: Date
  readonly limit?: number
  readonly after?: string
  readonly json?: boolean
  /** The folder of the server's `modelmount.db`, or `postgres://…`. */
  readonly data?: string
}

/** Returns the text to print. */
export async function usage({ data, json = false, limit = 1_000, ...query }: UsageOptions): Promise<string> {
  const llm = await createLlm({ database: await currentDatabase(data), batches: { run: false } })
  try {
    const rows = await llm.usage.report({ ...query, limit })
    if (query.order !== 'cost') noteNextPage(rows.length, limit, rows.at(-1)?.group)
    return json ? asJson(rows.map(toJson)) : toTable(rows, query.by)
  } finally {
    await llm.close()
  }
}

/** Writes nano-dollars as a string, because JavaScript rounds JSON numbers above 2^53. */
const toJson = ({ nanoUsd, batch, ...row }: UsageRow) => ({
  ...row,
  nanoUsd: `${nanoUsd}`,
  batch: { ...batch, nanoUsd: `${batch.nanoUsd}` },
})

const toTable = (rows: readonly UsageRow[], by: UsageQuery['by']): string =>
  table([
    [by.toUpperCase(), 'CALLS', 'INPUT', 'CACHED', 'WRITTEN', 'OUTPUT', 'USD', 'BATCHES'],
    ...rows.map(({ group, name, calls, tokens, nanoUsd, unpricedCalls, batch }) => [
      name === undefined ? group : `${name} (${group})`,
      `${calls}`,
      `${tokens.input}`,
      `${tokens.cachedInput}`,
      `${tokens.cacheWrite}`,
      `${tokens.output}`,
      unpricedCalls === calls ? 'no price' : toUsd(nanoUsd),
      batch.calls === 0 ? '' : toUsd(batch.nanoUsd),
    ]),
  ])

/** Formats exact dollars without trailing zeros: `0.000042`. */
export function toUsd(nanoUsd: bigint): string {
  const fraction = `${nanoUsd % 1_000_000_000n}`.padStart(9, '0').replace(/0+$/, '').padEnd(2, '0')
  return `${nanoUsd / 1_000_000_000n}.${fraction}`
}
