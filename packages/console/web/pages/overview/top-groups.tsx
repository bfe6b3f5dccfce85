/** The models or keys with most calls. */
import { useMemo, useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { Button } from '../../components/button.tsx'
import { Loading } from '../../components/empty-state.tsx'
import { ErrorMessage } from '../../components/error-message.tsx'
import { Section } from '../../components/page.tsx'
import { type Column, DataTable } from '../../components/table/data-table.tsx'
import { Money } from '../../components/text/money.tsx'
import { formatCount, formatPercent } from '../../format/numbers.ts'
import type { Range } from './ranges.ts'
import { type TrafficFilter, useTraffic } from './traffic.ts'
import { share, sumGroups, type TrafficGroup } from './traffic-sums.ts'

export interface TopGroupsProps {
  readonly by: 'model' | 'key'
  readonly range: Range
  readonly filter: TrafficFilter
  readonly onSelect: (group: string) => void
}

const shownAtFirst = 6
const shownAtMost = 200

export function TopGroups({ by, range, filter, onSelect }: TopGroupsProps) {
  const traffic = useTraffic(range, filter, by)
  const groups = useMemo(() => (traffic.data ? sumGroups(traffic.data) : []), [traffic.data])
  const [isOpen, setIsOpen] = useState(false)
  const columns = useMemo(() => columnsOf(by, onSelect), [by, onSelect])
  const title = by === 'model' ? 'Models' : 'Keys'
  const rows = groups.slice(0, isOpen ? shownAtMost : shownAtFirst)
  return (
    <Section title={title}>
      {traffic.error ? (
        <ErrorMessage error={traffic.error} onRetry={() => void traffic.refetch()} />
      ) : traffic.data === undefined ? (
        <Loading />
      ) : (
        <DataTable
          label={title}
          columns={columns}
          rows={rows}
          rowId={({ id }) => id}
          isStale={traffic.isPlaceholderData}
        />
      )}
      {groups.length > rows.length && !isOpen && (
        <div class="actions">
          <Button isSmall kind="plain" onClick={() => setIsOpen(true)}>
            {groups.length > shownAtMost
              ? `Show the first ${shownAtMost} of ${formatCount(groups.length)}`
              : `Show all ${groups.length}`}
          </Button>
        </div>
      )}
    </Section>
  )
}

const columnsOf = (
  by: 'model' | 'key',
  onSelect: (group: string) => void,
): readonly Column<TrafficGroup>[] => [
  {
    id: 'name',
    header: by === 'model' ? 'Model' : 'Key',
    cell: ({ id, name, isKey }) => (isKey ? <Link href={`/keys/${id}`}>{name}</Link> : name),
    sortValue: ({ name }) => name,
  },
  {
    id: 'calls',
    header: 'Calls',
    align: 'end',
    cell: ({ calls }) => formatCount(calls),
    sortValue: ({ calls }) => calls,
  },
  {
    id: 'errors',
    header: 'Errors',
    align: 'end',
    cell: ({ errors, calls }) =>
      errors === 0 ? (
        <span class="muted">0</span>
      ) : (
        `${formatCount(errors)} (${formatPercent(errors / calls)})`
      ),
    sortValue: ({ errors }) => errors,
  },
  {
    id: 'cached',
    header: 'From the cache',
    align: 'end',
    isHiddenNarrow: true,
    cell: ({ cachedInputTokens, inputTokens }) => {
      const part = share(cachedInputTokens, inputTokens)
      return part === undefined ? <span class="muted">–</span> : formatPercent(part)
    },
    sortValue: ({ cachedInputTokens, inputTokens }) => share(cachedInputTokens, inputTokens) ?? 0,
  },
  {
    id: 'tokens',
    header: 'Tokens',
    align: 'end',
    cell: ({ inputTokens, outputTokens }) => formatCount(inputTokens + outputTokens),
    sortValue: ({ inputTokens, outputTokens }) => inputTokens + outputTokens,
  },
  {
    id: 'cost',
    header: 'Cost',
    align: 'end',
    cell: ({ nanoUsd }) => <Money nanoUsd={nanoUsd} />,
    sortValue: ({ nanoUsd }) => nanoUsd,
  },
  {
    id: 'filter',
    header: 'Filter',
    isHeaderHidden: true,
    align: 'end',
    // The groups without an id have no filter.
    cell: ({ id, name }) =>
      id !== '' && (
        <Button isSmall kind="plain" aria-label={`Show only ${name}`} onClick={() => onSelect(id)}>
          Show only
        </Button>
      ),
  },
]
