/** Tiers, and requests for higher limits. */
import { useQuery } from '@tanstack/preact-query'
import { EmptyState, Loading } from '../../components/empty-state.tsx'
import { ErrorMessage } from '../../components/error-message.tsx'
import { Page, Section } from '../../components/page.tsx'
import { type Column, DataTable } from '../../components/table/data-table.tsx'
import { formatCount } from '../../format/numbers.ts'
import { listLimits } from '../../limits/limit-names.ts'
import { type Tier, tiersQuery } from '../../limits/tiers.ts'
import { Requests } from './requests.tsx'

export default function Limits() {
  return (
    <Page title="Limits" description="Requests for higher limits, and the tiers that keys can have.">
      <Requests />
      <Section
        title="Tiers"
        description="Groups of keys with the same limits. The limits of a key itself take precedence."
      >
        <Tiers />
      </Section>
    </Page>
  )
}

function Tiers() {
  const tiers = useQuery(tiersQuery)
  if (tiers.error) return <ErrorMessage error={tiers.error} onRetry={() => void tiers.refetch()} />
  if (tiers.data === undefined) return <Loading />
  if (tiers.data.length === 0) {
    return (
      <EmptyState title="The app defines no tiers" icon="limits">
        <p>
          Add them with the option <code>tiers</code> of <code>createLlm()</code>, or of{' '}
          <code>modelmount serve --config FILE</code>, such as{' '}
          <code>{'{ "tiers": { "free": { "requestsPerMinute": 20 } } }'}</code>.
        </p>
      </EmptyState>
    )
  }
  return <DataTable label="Tiers" columns={columns} rows={tiers.data} rowId={({ name }) => name} />
}

const columns: readonly Column<Tier>[] = [
  { id: 'name', header: 'Tier', cell: ({ name }) => <strong>{name}</strong>, sortValue: ({ name }) => name },
  {
    id: 'limits',
    header: 'Limits',
    cell: (tier) => {
      const limits = listLimits(tier.limits)
      if (limits.length === 0) return <span class="muted">None</span>
      return (
        <ul>
          {limits.map(([name, value]) => (
            <li key={name}>
              {name}: <span class="number">{value}</span>
            </li>
          ))}
        </ul>
      )
    },
  },
  {
    id: 'weight',
    header: 'Share of time',
    align: 'end',
    cell: ({ weight }) => `${weight} ×`,
    sortValue: ({ weight }) => weight,
  },
  {
    id: 'keys',
    header: 'Keys',
    align: 'end',
    cell: ({ keys }) => formatCount(keys),
    sortValue: ({ keys }) => keys,
  },
]
