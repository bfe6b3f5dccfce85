/** What a request for higher limits changes. A pending one shows the present limits, too. */
import { useQuery } from '@tanstack/preact-query'
import type { LimitRequest } from '../../api/types.ts'
import { type LimitChange, listChanges, mergeLimits } from '../../limits/limit-changes.ts'
import { tiersQuery } from '../../limits/tiers.ts'
import { useKey } from '../keys/queries.ts'

export function RequestChanges({ request }: { readonly request: LimitRequest }) {
  const key = useKey(request.keyId).data
  const tier = (useQuery(tiersQuery).data ?? []).find(({ name }) => name === key?.tier)
  const changes = listChanges(request, {
    limits: mergeLimits(key?.limits, tier?.limits),
    spendingLimit: key?.spendingLimit,
  })
  return (
    <ul class="changes">
      {changes.map((change) => (
        <li key={change.name}>
          {change.name}: {request.status === 'pending' && key ? <Change of={change} /> : change.requested}
        </li>
      ))}
    </ul>
  )
}

const Change = ({ of: { requested, current = 'no limit', isLower } }: { readonly of: LimitChange }) =>
  isLower ? (
    <span>
      stays at <strong class="number">{current}</strong>{' '}
      <span class="muted">(higher than the requested {requested} by now)</span>
    </span>
  ) : (
    <span>
      from <span class="number">{current}</span> to <strong class="number">{requested}</strong>
    </span>
  )
