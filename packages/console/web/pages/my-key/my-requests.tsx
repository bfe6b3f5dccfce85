/** The viewer's requests for higher limits. */
import { useQuery } from '@tanstack/preact-query'
import { useState } from 'preact/hooks'
import type { LimitRequest } from '../../api/types.ts'
import { Button } from '../../components/button.tsx'
import { Loading } from '../../components/empty-state.tsx'
import { ErrorMessage } from '../../components/error-message.tsx'
import { Section } from '../../components/page.tsx'
import { type Column, DataTable } from '../../components/table/data-table.tsx'
import { Time } from '../../components/text/time.tsx'
import { AskDialog } from '../../limits/ask-dialog.tsx'
import { DecisionText } from '../../limits/decision-text.tsx'
import type { KeyLimits } from '../../limits/limit-changes.ts'
import { listRequested } from '../../limits/limit-requests.ts'
import { RequestStatus } from '../../limits/request-status.tsx'
import { requestsQuery } from './queries.ts'

export function MyRequests({ current }: { readonly current: KeyLimits }) {
  const [isAsking, setIsAsking] = useState(false)
  const requests = useQuery(requestsQuery)
  const canAsk = current.spendingLimit !== undefined || Object.keys(current.limits).length > 0
  const isPending = requests.data?.some(({ status }) => status === 'pending') ?? false
  return (
    <Section
      title="Requests for higher limits"
      actions={
        // The server accepts one request at a time.
        isPending ? (
          <p class="muted">A request is pending. After the decision, you can ask again.</p>
        ) : !canAsk ? (
          <p class="muted">This key has no limits that could be raised.</p>
        ) : (
          <Button icon="plus" onClick={() => setIsAsking(true)}>
            Ask for higher limits
          </Button>
        )
      }
    >
      {requests.error ? (
        <ErrorMessage error={requests.error} onRetry={() => void requests.refetch()} />
      ) : requests.data === undefined ? (
        <Loading />
      ) : requests.data.length === 0 ? (
        <p class="muted">No requests so far.</p>
      ) : (
        <DataTable label="Requests" columns={columns} rows={requests.data} rowId={({ id }) => id} />
      )}
      {isAsking && <AskDialog current={current} onClose={() => setIsAsking(false)} />}
    </Section>
  )
}

const columns: readonly Column<LimitRequest>[] = [
  {
    id: 'limits',
    header: 'Requested',
    cell: (request) => (
      <ul>
        {listRequested(request).map(([name, value]) => (
          <li key={name}>
            {name}: <span class="number">{value}</span>
          </li>
        ))}
      </ul>
    ),
  },
  { id: 'reason', header: 'Reason', cell: ({ reason }) => reason || <span class="muted">None</span> },
  { id: 'asked', header: 'Asked', cell: ({ createdAt }) => <Time at={createdAt} isRelative /> },
  { id: 'status', header: 'Status', cell: ({ status }) => <RequestStatus status={status} /> },
  {
    id: 'decision',
    header: 'Decision',
    cell: (request) =>
      request.decidedAt === undefined ? (
        <span class="muted">Waiting</span>
      ) : (
        <DecisionText request={request} />
      ),
  },
]
