/** The calls that run now, in all processes of the app. */
import { useMemo, useState } from 'preact/hooks'
import { type StreamState, useEventStream } from '../../api/event-stream.ts'
import { useSession } from '../../api/session.ts'
import { ButtonLink } from '../../components/button.tsx'
import { EmptyState, Loading } from '../../components/empty-state.tsx'
import { Icon } from '../../components/icon.tsx'
import { Page, Section, Stat, Stats } from '../../components/page.tsx'
import { Badge } from '../../components/text/badge.tsx'
import { formatCount } from '../../format/numbers.ts'
import { CallTable } from './call-table.tsx'
import './live.css'
import { applyEvent, type CallsEvent, type LiveCalls, queuesOf, sumCalls } from './live-calls.ts'
import { QueueTable } from './queue-table.tsx'
import { Replicas } from './replica-table.tsx'
import { useNow } from './use-now.ts'

export default function LivePage() {
  const [live, setLive] = useState<LiveCalls>()
  const handlers = useMemo(
    () => ({
      calls: (data: unknown) => setLive((before) => applyEvent(before, data as CallsEvent, Date.now())),
    }),
    [],
  )
  const state = useEventStream('admin/events', handlers)
  return (
    <Page
      title="Live calls"
      description="The calls that run now. The page follows them as they change."
      actions={<Connection state={state} />}
    >
      {live ? <Content live={live} /> : state === 'lost' ? <NoStream /> : <Loading label="Connecting…" />}
    </Page>
  )
}

const Connection = ({ state }: { readonly state: StreamState }) => (
  <div role="status">
    {state === 'open' ? (
      <Badge tone="success">Live</Badge>
    ) : (
      <Badge tone="warning">{state === 'lost' ? 'Connection lost, trying again' : 'Connecting'}</Badge>
    )}
  </div>
)

const NoStream = () => (
  <EmptyState title="The events of the server cannot be read" icon="warning">
    <p>
      The console tries again every few seconds. Behind a proxy, check that it does not hold back{' '}
      <code>text/event-stream</code>.
    </p>
  </EmptyState>
)

function Content({ live: { calls, isShared } }: { readonly live: LiveCalls }) {
  const sums = sumCalls(calls)
  const queues = queuesOf(calls)
  const now = useNow(calls.length > 0)
  return (
    <>
      {!isShared && <OneProcess />}
      <Stats>
        <Stat name="Running">{formatCount(sums.running)}</Stat>
        <Stat name="Queued">{formatCount(sums.queued)}</Stat>
        <Stat name="Tokens per second">{formatCount(Math.round(sums.tokensPerSecond))}</Stat>
        {isShared && <Stat name="Processes with calls">{formatCount(sums.processes)}</Stat>}
      </Stats>
      {calls.length === 0 ? <NoCalls /> : <CallTable calls={calls} now={now} hasProcesses={isShared} />}
      {queues.length > 0 && (
        <Section title="Queues" description="Calls that wait for a model, by model.">
          <QueueTable queues={queues} now={now} />
        </Section>
      )}
      <Replicas />
    </>
  )
}

function OneProcess() {
  const { hasDatabase } = useSession()
  return (
    <div class="message">
      <Icon name="database" />
      <p>
        This page shows the calls of one process of the app.
        {!hasDatabase && (
          <>
            {' '}
            With the option <code>database</code>, it shows those of all processes.
          </>
        )}
      </p>
    </div>
  )
}

function NoCalls() {
  const { scopes } = useSession()
  return (
    <EmptyState
      title="No calls run now"
      icon="live"
      actions={
        scopes.includes('inference') ? (
          <ButtonLink href="/playground">Open the playground</ButtonLink>
        ) : undefined
      }
    >
      <p>
        Calls appear here as soon as they begin. Send one from a program, or from the playground in another
        tab.
      </p>
    </EmptyState>
  )
}
