/** One batch. */
import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { useCan } from '../../api/session.ts'
import { Bar } from '../../components/bar.tsx'
import { Button } from '../../components/button.tsx'
import { Confirm } from '../../components/confirm.tsx'
import { Loading } from '../../components/empty-state.tsx'
import { ErrorMessage } from '../../components/error-message.tsx'
import { useNotify } from '../../components/notices.tsx'
import { Card, Fact, Facts, Page, Section, Stat, Stats } from '../../components/page.tsx'
import { Time } from '../../components/text/time.tsx'
import { formatCount } from '../../format/numbers.ts'
import { formatDuration } from '../../format/time.ts'
import { BatchResults } from './batch-results.tsx'
import { BatchStatusBadge } from './batch-status.tsx'
import { progressOf, progressText, remainingMs } from './progress.ts'
import { type Batch, isEnded, useBatch, useCancelBatch } from './queries.ts'

export function BatchDetails({ id }: { readonly id: string }) {
  const batch = useBatch(id)
  return (
    <Page
      title="Batch"
      description={<span class="code">{id}</span>}
      parent={{ href: '/batches', title: 'Batches' }}
      actions={batch.data && <CancelBatch batch={batch.data} />}
    >
      {batch.error ? (
        <ErrorMessage error={batch.error} onRetry={() => void batch.refetch()} />
      ) : batch.data === undefined ? (
        <Loading />
      ) : (
        <Content batch={batch.data} />
      )}
    </Page>
  )
}

function Content({ batch }: { readonly batch: Batch }) {
  const canReadResults = useCan('admin')
  const { counts, status, problems, archivedAt } = batch
  return (
    <>
      {status !== 'failed' && (
        <>
          <Progress batch={batch} />
          <Stats>
            <Stat name="Succeeded">{formatCount(counts.succeeded)}</Stat>
            <Stat name="Errors">{formatCount(counts.errored)}</Stat>
            <Stat name="Canceled">{formatCount(counts.canceled)}</Stat>
            <Stat name="Expired">{formatCount(counts.expired)}</Stat>
          </Stats>
        </>
      )}
      {problems && problems.length > 0 && <Problems problems={problems} />}
      <Card>
        <BatchFacts batch={batch} />
      </Card>
      {status === 'ended' &&
        (archivedAt === undefined ? (
          canReadResults && <BatchResults batch={batch} />
        ) : (
          <p class="muted">
            The results were deleted <Time at={archivedAt} isRelative />.
          </p>
        ))}
    </>
  )
}

function Progress({ batch }: { readonly batch: Batch }) {
  const remaining = remainingMs(batch, new Date())
  return (
    <div class="bar-with-text">
      <p class="bar-texts">
        <span class="badges">
          <BatchStatusBadge status={batch.status} />
          <span class="number">{progressText(batch)}</span>
        </span>
        {remaining !== undefined && <span class="muted">About {formatDuration(remaining)} left</span>}
      </p>
      <Bar label="Progress" kind="progress" value={progressOf(batch)} text={progressText(batch)} />
    </div>
  )
}

const Problems = ({ problems }: { readonly problems: NonNullable<Batch['problems']> }) => (
  <Section title="Problems" description="No request has run. Correct the file, then create the batch again.">
    <ul class="batch-problems">
      {problems.map(({ message, line, param }) => (
        <li key={`${line} ${param} ${message}`}>
          {line !== undefined && <strong>Line {formatCount(line)}: </strong>}
          {message}
        </li>
      ))}
    </ul>
  </Section>
)

function BatchFacts({ batch }: { readonly batch: Batch }) {
  const { key, caller, tenant, models, metadata = {}, ...times } = batch
  return (
    <Facts>
      {batch.status === 'failed' && (
        <Fact name="Status">
          <BatchStatusBadge status="failed" />
        </Fact>
      )}
      <Fact name="Route">
        <span class="code">{batch.endpoint}</span>
      </Fact>
      <Fact name="Key">
        {key ? <Link href={`/keys/${key.id}`}>{key.name}</Link> : (caller ?? 'The app itself')}
      </Fact>
      {tenant !== '' && <Fact name="Tenant">{tenant}</Fact>}
      {models && <Fact name="Models">{models.join(', ')}</Fact>}
      {timeNames.map(([name, title]) => {
        const at = times[name]
        return at === undefined ? null : (
          <Fact name={title} key={name}>
            <Time at={at} />
          </Fact>
        )
      })}
      {Object.entries(metadata).map(([name, value]) => (
        <Fact name={name} key={name}>
          {value}
        </Fact>
      ))}
    </Facts>
  )
}

const timeNames = [
  ['createdAt', 'Created'],
  ['startedAt', 'Started'],
  ['cancelRequestedAt', 'Canceled'],
  ['endedAt', 'Ended'],
  ['expiresAt', 'Expires'],
] as const

function CancelBatch({ batch }: { readonly batch: Batch }) {
  const canChange = useCan('admin')
  const [isOpen, setIsOpen] = useState(false)
  const notify = useNotify()
  const cancel = useCancelBatch(batch.id)
  if (!canChange || isEnded(batch) || batch.status === 'canceling') return null
  return (
    <>
      <Button icon="stop" onClick={() => setIsOpen(true)}>
        Cancel batch
      </Button>
      {isOpen && (
        <Confirm
          title="Cancel this batch?"
          action="Cancel batch"
          dismiss="Keep it running"
          onConfirm={async () => {
            await cancel()
            notify('Canceling the batch.')
          }}
          onClose={() => setIsOpen(false)}
        >
          <p>Requests that run already end. The others do not run. Results so far are kept.</p>
        </Confirm>
      )}
    </>
  )
}
