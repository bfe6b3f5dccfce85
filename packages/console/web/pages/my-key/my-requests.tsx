/** The viewer's requests for higher limits. */
import { useQuery } from '@tanstack/preact-query'
import { useState } from 'preact/hooks'
import type { ApiKey, LimitRequest } from '../../api/types.ts'
import { Button } from '../../components/button.tsx'
import { Loading } from '../../components/empty-state.tsx'
import { ErrorMessage } from '../../components/error-message.tsx'
import { Section } from '../../components/page.tsx'
import { type Column, DataTable } from '../../components/table/data-table.tsx'
import { Time } from '../../components/text/time.tsx'
import { AskDialog } from '../../limits/ask-dialog.tsx'
import { DecisionText } from '../../limits/decision-text.tsx'
import { toLimits } from '../../limits/limit-changes.ts'
import { listLimits } from '../../limits/limit-names.ts'
import { RequestStatus } from '../../limits/request-status.tsx'
import { limitsQuery, requestsQuery } from './queries.ts'

export function MyRequests({ of: key }: { readonly of: ApiKey }) {
  const [isAsking, setIsAsking] = useState(false)
  const requests = useQuery(requestsQuery)
  const limits = useQuery(limitsQuery).data ?? []
  const isPending = requests.data?.some(({ status }) => status === 'pending') ?? false
  return (
    <Section
      title="Requests for higher limits"
      actions={
        // The server accepts one request at a time.
        isPending ? (
          <p class="muted">A request is pending. After the decision, you can ask again.</p>
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
      {isAsking && (
        <AskDialog current={{ ...toLimits(limits), ...key.limits }} onClose={() => setIsAsking(false)} />
      )}
    </Section>
  )
}

const columns: readonly Column<LimitRequest>[] = [
  {
    id: 'limits',
    header: 'Requested',
    cell: ({ limits }) => (
      <ul>
        {listLimits(limits).map(([name, value]) => (
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
