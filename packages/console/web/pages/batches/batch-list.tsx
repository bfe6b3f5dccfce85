/** All batches. */
import { Link } from 'wouter-preact'
import { admin, read } from '../../api/client.ts'
import { EmptyState } from '../../components/empty-state.tsx'
import { SelectField } from '../../components/form/field.tsx'
import { Page } from '../../components/page.tsx'
import { type Column, PagedTable } from '../../components/table/data-table.tsx'
import { usePages } from '../../components/table/use-pages.ts'
import { Time } from '../../components/text/time.tsx'
import { useFilter } from '../../components/use-filter.ts'
import { formatCount } from '../../format/numbers.ts'
import { BatchProgress, BatchStatusBadge, statusNames } from './batch-status.tsx'
import { type Batch, type BatchStatus, batchesKey, refetchIntervalOf } from './queries.ts'

export function BatchList() {
  const [status, setStatus] = useFilter('status')
  const pages = usePages<Batch>(
    [...batchesKey, 'list', status],
    ({ page, signal }) => {
      const query = { ...page, ...(status && { status: status as BatchStatus }) }
      return read(admin.GET('/batches', { params: { query }, signal }))
    },
    { refetchInterval: refetchIntervalOf },
  )
  return (
    <Page title="Batches" description="Requests that run in the background, with their results.">
      <search class="toolbar">
        <SelectField label="Status" value={status} onChange={setStatus} options={statusOptions} />
      </search>
      <PagedTable
        label="Batches"
        columns={columns}
        pages={pages}
        rowId={({ id }) => id}
        empty={
          status ? (
            <EmptyState title="No batch has this status" icon="search">
              <p>Choose another status.</p>
            </EmptyState>
          ) : (
            <EmptyState title="No batches yet" icon="batches">
              <p>
                Programs create batches through <code>/v1/batches</code> of the OpenAI API or{' '}
                <code>/v1/messages/batches</code> of the Anthropic API. They appear here with their progress.
              </p>
            </EmptyState>
          )
        }
      />
    </Page>
  )
}

const statusOptions = [['', 'All'] as const, ...Object.entries(statusNames)]

const columns: readonly Column<Batch>[] = [
  {
    id: 'batch',
    header: 'Batch',
    cell: ({ id, endpoint }) => (
      <>
        <Link href={`/batches/${id}`} class="code">
          {id}
        </Link>
        <div class="muted code">{endpoint}</div>
      </>
    ),
  },
  { id: 'status', header: 'Status', cell: ({ status }) => <BatchStatusBadge status={status} /> },
  { id: 'progress', header: 'Progress', cell: (batch) => <BatchProgress batch={batch} /> },
  {
    id: 'errors',
    header: 'Errors',
    align: 'end',
    cell: ({ counts: { errored } }) => (errored === 0 ? <span class="muted">0</span> : formatCount(errored)),
  },
  {
    id: 'owner',
    header: 'Key',
    cell: ({ key, caller }) =>
      key ? <Link href={`/keys/${key.id}`}>{key.name}</Link> : (caller ?? <span class="muted">The app</span>),
  },
  { id: 'created', header: 'Created', cell: ({ createdAt }) => <Time at={createdAt} isRelative /> },
]
