/** Requests for higher limits: approve, refuse, look up. */
import { useState } from 'preact/hooks'
import { useCan } from '../../api/session.ts'
import type { LimitRequest } from '../../api/types.ts'
import { Button } from '../../components/button.tsx'
import { EmptyState, Loading } from '../../components/empty-state.tsx'
import { ErrorMessage } from '../../components/error-message.tsx'
import { SelectField } from '../../components/form/field.tsx'
import { Section } from '../../components/page.tsx'
import { Pager } from '../../components/table/data-table.tsx'
import { usePages } from '../../components/table/use-pages.ts'
import { useFilter } from '../../components/use-filter.ts'
import { limitRequestsKey, listLimitRequests, requestsRefreshMs } from '../../limits/limit-requests.ts'
import { DecideDialog } from './decide-dialog.tsx'
import { RequestCard } from './request-card.tsx'

const statusOptions = [
  ['', 'Pending'],
  ['approved', 'Approved'],
  ['refused', 'Refused'],
] as const

export function Requests() {
  const [filter, setFilter] = useFilter('status')
  const status = (filter || 'pending') as LimitRequest['status']
  const pages = usePages<LimitRequest>(
    [...limitRequestsKey, status],
    ({ page, signal }) => listLimitRequests(page, status, signal),
    { refetchInterval: () => requestsRefreshMs },
  )
  return (
    <Section
      title="Requests"
      actions={
        <SelectField
          label="Status of the requests"
          isLabelHidden
          value={filter}
          onChange={setFilter}
          options={statusOptions}
        />
      }
    >
      {pages.error != null ? (
        <ErrorMessage error={pages.error} onRetry={pages.refetch} />
      ) : pages.rows === undefined ? (
        <Loading />
      ) : pages.rows.length === 0 ? (
        <EmptyState
          title={status === 'pending' ? 'No request is waiting' : `No ${status} requests`}
          icon="limits"
        >
          {status === 'pending' && (
            <p>Holders of keys ask for higher limits on their page “My key”, or with the admin API.</p>
          )}
        </EmptyState>
      ) : (
        <RequestList requests={pages.rows} />
      )}
      <Pager label="requests" pages={pages} />
    </Section>
  )
}

interface Decision {
  readonly request: LimitRequest
  readonly kind: 'approve' | 'refuse'
}

function RequestList({ requests }: { readonly requests: readonly LimitRequest[] }) {
  const canDecide = useCan('admin')
  const [decision, setDecision] = useState<Decision | undefined>()
  return (
    <>
      <ul class="stack">
        {requests.map((request) => (
          <li key={request.id}>
            <RequestCard request={request}>
              {canDecide && request.status === 'pending' && (
                <div class="actions">
                  <Button onClick={() => setDecision({ request, kind: 'refuse' })}>Refuse</Button>
                  <Button kind="primary" onClick={() => setDecision({ request, kind: 'approve' })}>
                    Approve
                  </Button>
                </div>
              )}
            </RequestCard>
          </li>
        ))}
      </ul>
      {decision && <DecideDialog {...decision} onClose={() => setDecision(undefined)} />}
    </>
  )
}
