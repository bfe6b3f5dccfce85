/** Usage and cost by key, model, tenant or day. */
import { useMemo } from 'preact/hooks'
import { DownloadLink } from '../../components/download-link.tsx'
import { EmptyState, Loading } from '../../components/empty-state.tsx'
import { ErrorMessage } from '../../components/error-message.tsx'
import { FilterButton } from '../../components/filter-button.tsx'
import { SelectField, TextField } from '../../components/form/field.tsx'
import { Page, Section } from '../../components/page.tsx'
import { useFilter } from '../../components/use-filter.ts'
import { formatCalls } from '../../format/numbers.ts'
import { sumUsage } from '../../limits/usage-days.ts'
import { HowToSetPrices } from '../../prices/price-warning.tsx'
import { KeyFilter } from '../keys/key-filter.tsx'
import { daysOfRange, rangeNames, toRangeId } from './date-ranges.ts'
import { queryOf, type UsageBy, type UsageFilter, type UsageRow, useReport } from './report.ts'
import './usage.css'
import { UsageCharts, UsageSums } from './usage-charts.tsx'
import { byNames, UsageTable } from './usage-table.tsx'

export default function Usage() {
  const [byText, setBy] = useFilter('by')
  const by: UsageBy = Object.hasOwn(byNames, byText) ? (byText as UsageBy) : 'key'
  const [model, setModel] = useFilter('model')
  const [key, setKey] = useFilter('key')
  const { days, fields } = useDays()
  const filter = useMemo(() => ({ days, model, key }), [days, model, key])
  return (
    <Page
      title="Usage"
      description="Calls, tokens and exact cost. Calls without an answer are in the overview only. Days begin at midnight in UTC."
      actions={
        <DownloadLink url={`admin/usage.csv?${queryOf(by, filter)}`} fileName={`usage-by-${by}.csv`}>
          Download CSV
        </DownloadLink>
      }
    >
      <search class="toolbar" aria-label="Range and filters">
        {fields}
        <SelectField label="Group by" value={by} onChange={setBy} options={byOptions} />
        <FilterButton name="Model" value={model} onClear={() => setModel('')} />
        <KeyFilter id={key} onClear={() => setKey('')} />
      </search>
      <Report by={by} filter={filter} onSelect={by === 'model' ? setModel : setKey} />
    </Page>
  )
}

const byOptions = Object.entries(byNames)
const rangeOptions = Object.entries(rangeNames)

/** The chosen days, and the fields that choose them. */
function useDays() {
  const [rangeText, setRange] = useFilter('range')
  const [from, setFrom] = useFilter('from')
  const [to, setTo] = useFilter('to')
  const range = toRangeId(rangeText)
  const today = new Date().toISOString().slice(0, 10)
  const days = useMemo(() => daysOfRange(range, { from, to }, new Date(today)), [range, from, to, today])
  const fields = (
    <>
      <SelectField label="Days" value={range} onChange={setRange} options={rangeOptions} />
      {range === 'custom' && (
        <>
          <TextField label="From" type="date" value={from} max={to || today} onChange={setFrom} />
          <TextField label="To" type="date" value={to} min={from} max={today} onChange={setTo} />
        </>
      )}
    </>
  )
  return { days, fields }
}

interface ReportProps {
  readonly by: UsageBy
  readonly filter: UsageFilter
  readonly onSelect: (group: string) => void
}

function Report({ by, filter, onSelect }: ReportProps) {
  const byDay = useReport('day', filter)
  const report = useReport(by, filter)
  const totalNanoUsd = useMemo(() => sumUsage(byDay.data?.rows ?? []).nanoUsd, [byDay.data])
  if (byDay.error) return <ErrorMessage error={byDay.error} onRetry={() => void byDay.refetch()} />
  if (byDay.data === undefined) return <Loading />
  if (byDay.data.rows.length === 0) {
    return (
      <EmptyState title="No calls on these days" icon="usage">
        <p>Choose other days. Usage appears here a few seconds after a call.</p>
      </EmptyState>
    )
  }
  return (
    <>
      <UsageSums rows={byDay.data.rows} />
      <Unpriced rows={byDay.data.rows} />
      <UsageCharts rows={byDay.data.rows} days={filter.days} />
      <Section title={`By ${byNames[by].toLowerCase()}`}>
        {report.error ? (
          <ErrorMessage error={report.error} onRetry={() => void report.refetch()} />
        ) : report.data === undefined ? (
          <Loading />
        ) : (
          <UsageTable
            // Another grouping begins with its first rows again.
            key={report.data.by}
            report={report.data}
            totalNanoUsd={totalNanoUsd}
            isStale={report.isPlaceholderData}
            onSelect={onSelect}
          />
        )}
      </Section>
    </>
  )
}

function Unpriced({ rows }: { readonly rows: readonly UsageRow[] }) {
  const calls = rows.reduce((total, { unpricedCalls }) => total + unpricedCalls, 0)
  if (calls === 0) return null
  return (
    <div class="message warning">
      <p>
        {formatCalls(calls)} cost nothing, because{' '}
        {calls === 1 ? 'its model has no price' : 'their models have no price'}. <HowToSetPrices />
      </p>
    </div>
  )
}
