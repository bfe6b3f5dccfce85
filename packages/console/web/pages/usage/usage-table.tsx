/** Usage of each key, model, tenant or day. */
import { useMemo, useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { Bar } from '../../components/bar.tsx'
import { Button } from '../../components/button.tsx'
import { type Column, DataTable } from '../../components/table/data-table.tsx'
import { Money } from '../../components/text/money.tsx'
import { formatUsd, fraction } from '../../format/money.ts'
import { formatCalls, formatCount, formatPercent } from '../../format/numbers.ts'
import type { UsageBy, UsageReport, UsageRow } from './report.ts'

export interface UsageTableProps {
  readonly report: UsageReport
  /** The cost of all rows, also of those that the report leaves out. */
  readonly totalNanoUsd: bigint
  readonly isStale: boolean
  readonly onSelect: (group: string) => void
}

export const byNames = {
  key: 'Key',
  model: 'Model',
  tenant: 'Tenant',
  day: 'Day',
} as const satisfies Record<UsageBy, string>

const step = 50

export function UsageTable({ report, totalNanoUsd, isStale, onSelect }: UsageTableProps) {
  const { by, rows, hasMore } = report
  const [shown, setShown] = useState(step)
  // The newest day first. The others come in the order of their cost.
  const sorted = useMemo(() => (by === 'day' ? rows.toReversed() : rows), [by, rows])
  const isWhole = sorted.length <= shown && !hasMore
  const columns = useMemo(
    () => columnsOf(by, totalNanoUsd, isWhole, onSelect),
    [by, totalNanoUsd, isWhole, onSelect],
  )
  return (
    <>
      <DataTable
        label={`Usage by ${by}`}
        columns={columns}
        rows={sorted.slice(0, shown)}
        rowId={({ group }) => group}
        isStale={isStale}
      />
      {!isWhole && (
        <div class="toolbar">
          <p class="muted">
            {by === 'day' ? 'The newest' : 'The most expensive'} {formatCount(Math.min(shown, sorted.length))}{' '}
            of {formatCount(sorted.length)}
            {hasMore && ' or more. The CSV file has all of them'}.
          </p>
          {sorted.length > shown && (
            <Button isSmall onClick={() => setShown(shown + step)}>
              Show {formatCount(Math.min(step, sorted.length - shown))} more
            </Button>
          )}
        </div>
      )}
    </>
  )
}

const inputOf = ({ tokens }: UsageRow): number => tokens.input + tokens.cachedInput + tokens.cacheWrite

const cachedShareOf = (row: UsageRow): number => row.tokens.cachedInput / Math.max(1, inputOf(row))

/** @param isSortable whether the table has all rows */
function columnsOf(
  by: UsageBy,
  total: bigint,
  isSortable: boolean,
  onSelect: (group: string) => void,
): readonly Column<UsageRow>[] {
  const columns: readonly Column<UsageRow>[] = [
    {
      id: 'group',
      header: byNames[by],
      cell: (row) => <GroupName by={by} row={row} />,
      sortValue: ({ group, name }) => name ?? group,
    },
    ...countColumns,
    {
      id: 'cost',
      header: 'Cost',
      align: 'end',
      cell: ({ nanoUsd, unpricedCalls }) => (
        <>
          <Money nanoUsd={nanoUsd} />
          {unpricedCalls > 0 && <div class="muted">{formatCalls(unpricedCalls)} without a price</div>}
        </>
      ),
      sortValue: ({ nanoUsd }) => BigInt(nanoUsd),
    },
    {
      id: 'share',
      header: 'Share',
      isHiddenNarrow: true,
      cell: (row) => <Share row={row} total={total} />,
    },
    ...(by === 'key' || by === 'model' ? [selectColumn(onSelect)] : []),
  ]
  return isSortable ? columns : columns.map(({ sortValue: _, ...column }) => column)
}

const countColumns: readonly Column<UsageRow>[] = [
  {
    id: 'calls',
    header: 'Calls',
    align: 'end',
    cell: ({ calls }) => formatCount(calls),
    sortValue: ({ calls }) => calls,
  },
  {
    id: 'input',
    header: 'Input tokens',
    align: 'end',
    cell: (row) => formatCount(inputOf(row)),
    sortValue: inputOf,
  },
  {
    id: 'cached',
    header: 'From the cache',
    align: 'end',
    isHiddenNarrow: true,
    cell: (row) => (inputOf(row) === 0 ? <span class="muted">–</span> : formatPercent(cachedShareOf(row))),
    sortValue: cachedShareOf,
  },
  {
    id: 'output',
    header: 'Output tokens',
    align: 'end',
    cell: ({ tokens }) => formatCount(tokens.output),
    sortValue: ({ tokens }) => tokens.output,
  },
]

const selectColumn = (onSelect: (group: string) => void): Column<UsageRow> => ({
  id: 'select',
  header: 'Filter',
  isHeaderHidden: true,
  align: 'end',
  cell: ({ group, name = group }) => (
    <Button isSmall kind="plain" aria-label={`Show only ${name}`} onClick={() => onSelect(group)}>
      Show only
    </Button>
  ),
})

const Share = ({ row: { group, name = group, nanoUsd }, total }: { row: UsageRow; total: bigint }) => {
  const part = total === 0n ? 0 : fraction(nanoUsd, total)
  return (
    <div class="usage-share">
      <Bar
        kind="progress"
        label={`Share of ${name || 'the app'}`}
        value={part}
        text={`${formatUsd(nanoUsd)}, ${formatPercent(part)}`}
      />
      <span class="muted number">{formatPercent(part)}</span>
    </div>
  )
}

function GroupName({ by, row: { group, name } }: { readonly by: UsageBy; readonly row: UsageRow }) {
  if (group === '') return <span class="muted">The app itself</span>
  if (by === 'day') return <span class="number">{group}</span>
  // Callers of the host app's own login have no name.
  return by === 'key' && name !== undefined ? (
    <Link href={`/keys/${group}`}>{name}</Link>
  ) : (
    <span>{group}</span>
  )
}
