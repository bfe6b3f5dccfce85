/** The servers of fleets, as the process that answers knows them. */
import { useQuery } from '@tanstack/preact-query'
import { admin, read } from '../../api/client.ts'
import type { ResponseOf } from '../../api/types.ts'
import { Section } from '../../components/page.tsx'
import { type Column, DataTable } from '../../components/table/data-table.tsx'
import { Badge, type Tone } from '../../components/text/badge.tsx'
import { Time } from '../../components/text/time.tsx'
import { formatCount, formatPercent } from '../../format/numbers.ts'

type Replica = ResponseOf<'getActivity'>['replicas'][number]

const refreshMs = 5_000
/** Replicas appear with the first call of a fleet, and most apps have no fleet. */
const rareRefreshMs = 30_000

/** Shows nothing in an app without replicas. */
export function Replicas() {
  const { data: replicas = [] } = useQuery({
    queryKey: ['replicas'],
    queryFn: async ({ signal }) => (await read(admin.GET('/activity', { signal }))).replicas,
    refetchInterval: ({ state }) => (state.data?.length ? refreshMs : rareRefreshMs),
  })
  if (replicas.length === 0) return null
  const ready = replicas.filter(({ state }) => state === 'ready').length
  return (
    <Section
      title="Replicas"
      description={`${ready} of ${replicas.length} are ready. Each process of the app counts its own calls.`}
    >
      <DataTable
        label="Replicas"
        columns={columns}
        rows={replicas}
        rowId={({ engine, url }) => `${engine} ${url}`}
      />
    </Section>
  )
}

const states = {
  ready: ['Ready', 'success'],
  starting: ['Starting', 'accent'],
  overloaded: ['Overloaded', 'warning'],
  ejected: ['Ejected', 'danger'],
  draining: ['Draining', 'neutral'],
} as const satisfies Record<Replica['state'], readonly [string, Tone]>

const columns: readonly Column<Replica>[] = [
  {
    id: 'url',
    header: 'Replica',
    cell: ({ url, engine }) => (
      <>
        {url}
        {engine !== undefined && <div class="muted">{engine}</div>}
      </>
    ),
  },
  {
    id: 'state',
    header: 'State',
    cell: ({ state, lastFailure }) => {
      const [text, tone] = states[state]
      return (
        <>
          <Badge tone={tone}>{text}</Badge>
          {lastFailure && (
            <div class="muted">
              {lastFailure.kind}, <Time at={lastFailure.at} isRelative />
            </div>
          )}
        </>
      )
    },
  },
  {
    id: 'running',
    header: 'Running',
    align: 'end',
    cell: ({ runningCalls, outstandingTokens }) => (
      <>
        {formatCount(runningCalls)}
        {outstandingTokens >= 1 && (
          <div class="muted">{formatCount(Math.round(outstandingTokens))} tokens left</div>
        )}
      </>
    ),
  },
  {
    id: 'calls',
    header: 'Calls',
    align: 'end',
    cell: ({ calls, failedCalls }) => (
      <>
        {formatCount(calls)}
        {failedCalls > 0 && <div class="muted">{formatCount(failedCalls)} failed</div>}
      </>
    ),
  },
  {
    id: 'cached',
    header: 'Cached input',
    align: 'end',
    cell: ({ inputTokens, cachedTokens }) =>
      inputTokens === 0 ? <span class="muted">–</span> : formatPercent(cachedTokens / inputTokens),
  },
  { id: 'ejections', header: 'Ejections', align: 'end', cell: ({ ejections }) => formatCount(ejections) },
]
