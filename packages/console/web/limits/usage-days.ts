/** Sums of usage by day. */
import type { ResponseOf } from '../api/types.ts'

type UsageDay = Pick<ResponseOf<'reportUsage'>['data'][number], 'group' | 'calls' | 'tokens' | 'nanoUsd'>

export interface UsageSums {
  readonly calls: number
  /** All input tokens, from the cache or not. */
  readonly input: number
  readonly cachedInput: number
  readonly output: number
  readonly nanoUsd: bigint
}

export function sumUsage(rows: readonly UsageDay[]): UsageSums {
  const sum = (pick: (row: UsageDay) => number): number => rows.reduce((total, row) => total + pick(row), 0)
  return {
    calls: sum(({ calls }) => calls),
    input: sum(({ tokens }) => tokens.input + tokens.cachedInput + tokens.cacheWrite),
    cachedInput: sum(({ tokens }) => tokens.cachedInput),
    output: sum(({ tokens }) => tokens.output),
    nanoUsd: rows.reduce((total, { nanoUsd }) => total + BigInt(nanoUsd), 0n),
  }
}

/** One entry for each of the last `count` days, since the report has no rows for days without calls. */
export function fillDays(
  rows: readonly UsageDay[],
  today: string,
  count: number,
): readonly { readonly day: string; readonly nanoUsd: bigint }[] {
  const byDay = new Map(rows.map(({ group, nanoUsd }) => [group, BigInt(nanoUsd)]))
  return Array.from({ length: count }, (_, index) => {
    const at = Date.parse(today) - (count - 1 - index) * 86_400_000
    const day = new Date(at).toISOString().slice(0, 10)
    return { day, nanoUsd: byDay.get(day) ?? 0n }
  })
}
