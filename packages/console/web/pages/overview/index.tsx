/** Requests, tokens, cost, errors and latency over time, and what needs attention. */
import { useSession } from '../../api/session.ts'
import { ButtonLink } from '../../components/button.tsx'
import { EmptyState, Loading } from '../../components/empty-state.tsx'
import { ErrorMessage } from '../../components/error-message.tsx'
import { FilterButton } from '../../components/filter-button.tsx'
import { SelectField } from '../../components/form/field.tsx'
import { Page } from '../../components/page.tsx'
import { useFilter } from '../../components/use-filter.ts'
import { KeyFilter } from '../keys/key-filter.tsx'
import { NeedsAttention } from './needs-attention.tsx'
import './overview.css'
import { type Range, rangeOf, ranges } from './ranges.ts'
import { TopGroups } from './top-groups.tsx'
import { type TrafficFilter, useTraffic } from './traffic.ts'
import { TrafficCharts } from './traffic-charts.tsx'
import { TrafficStats } from './traffic-stats.tsx'

export default function Overview() {
  const [rangeId, setRangeId] = useFilter('range')
  const [by, setBy] = useFilter('by')
  const [model, setModel] = useFilter('model')
  const [key, setKey] = useFilter('key')
  const range = rangeOf(rangeId)
  return (
    <Page
      title="Overview"
      description="Calls of all programs and people, updated each minute. Also those that failed or were rejected, but none without a valid key."
    >
      <search class="toolbar" aria-label="Range and filters">
        <SelectField label="Range" value={range.id} onChange={setRangeId} options={rangeOptions} />
        <SelectField label="Charts" value={by} onChange={setBy} options={byOptions} />
        <FilterButton name="Model" value={model} onClear={() => setModel('')} />
        <KeyFilter id={key} onClear={() => setKey('')} />
      </search>
      <Content
        range={range}
        by={by === 'model' || by === 'key' ? by : undefined}
        filter={{ model, key }}
        onModel={setModel}
        onKey={setKey}
      />
    </Page>
  )
}

const rangeOptions = ranges.map(({ id, name }) => [id, name] as const)
const byOptions = [
  ['', 'All calls'],
  ['model', 'By model'],
  ['key', 'By key'],
] as const

interface ContentProps {
  readonly range: Range
  readonly by: 'model' | 'key' | undefined
  readonly filter: TrafficFilter
  readonly onModel: (model: string) => void
  readonly onKey: (key: string) => void
}

function Content({ range, by, filter, onModel, onKey }: ContentProps) {
  const totals = useTraffic(range, filter)
  const traffic = useTraffic(range, filter, by)
  if (totals.error) return <ErrorMessage error={totals.error} onRetry={() => void totals.refetch()} />
  if (totals.data === undefined) return <Loading />
  const isEmpty = totals.data.rows.every(({ calls }) => calls === 0)
  return (
    <>
      {isEmpty ? <NoCalls range={range} /> : <TrafficStats traffic={totals.data} />}
      <NeedsAttention range={range} />
      {traffic.error && <ErrorMessage error={traffic.error} onRetry={() => void traffic.refetch()} />}
      {!isEmpty && traffic.data && (
        <>
          <TrafficCharts traffic={traffic.data} isGrouped={traffic.data.by !== undefined} />
          <TopGroups by="model" range={range} filter={filter} onSelect={onModel} />
          <TopGroups by="key" range={range} filter={filter} onSelect={onKey} />
        </>
      )}
    </>
  )
}

function NoCalls({ range }: { readonly range: Range }) {
  const { scopes } = useSession()
  return (
    <EmptyState
      title={`No calls in the ${range.name.toLowerCase()}`}
      icon="overview"
      actions={
        <>
          {scopes.includes('inference') && (
            <ButtonLink href="/playground" kind="primary">
              Open the playground
            </ButtonLink>
          )}
          {scopes.includes('admin') && <ButtonLink href="/keys/new">Create key</ButtonLink>}
        </>
      }
    >
      <p>Calls appear here within a minute. Send one from the playground, or choose a longer range.</p>
    </EmptyState>
  )
}
