/** Sums of calls over time. */
import { groupRows } from './group-rows.ts'
import type { Traffic, TrafficRow } from './traffic.ts'

export interface TrafficSums {
  readonly calls: number
  readonly errors: number
  readonly inputTokens: number
  readonly cachedInputTokens: number
  readonly outputTokens: number
  readonly nanoUsd: bigint
}

export interface TrafficGroup extends TrafficSums {
  /** Name of the model, or id of the key. */
  readonly id: string
  /** Text for the viewer. */
  readonly name: string
  /** Whether the group is an API key. Callers of the host app's own login have an id only. */
  readonly isKey: boolean
}

export function sumTraffic(rows: readonly TrafficRow[]): TrafficSums {
  const sum = (pick: (row: TrafficRow) => number): number => rows.reduce((total, row) => total + pick(row), 0)
  return {
    calls: sum(({ calls }) => calls),
    errors: sum(({ errors }) => errors),
    inputTokens: sum(({ inputTokens }) => inputTokens),
    cachedInputTokens: sum(({ cachedInputTokens }) => cachedInputTokens),
    outputTokens: sum(({ outputTokens }) => outputTokens),
    nanoUsd: rows.reduce((total, { nanoUsd }) => total + BigInt(nanoUsd), 0n),
  }
}

/** The sums of each group, the one with most calls first. */
export const sumGroups = ({ by, rows }: Pick<Traffic, 'by' | 'rows'>): readonly TrafficGroup[] =>
  [...groupRows(rows, ({ group = '' }) => group)]
    .map(([id, own]) => {
      const keyName = own.findLast(({ name }) => name)?.name
      const unnamed = by === 'key' ? 'The app itself' : 'Unknown models'
      return { id, name: (keyName ?? id) || unnamed, isKey: keyName !== undefined, ...sumTraffic(own) }
    })
    .sort((a, b) => b.calls - a.calls || a.name.localeCompare(b.name))

/** @returns undefined if nothing is divided */
export const share = (part: number, whole: number): number | undefined =>
  whole === 0 ? undefined : part / whole
