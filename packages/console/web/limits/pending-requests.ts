/** The requests for higher limits that wait for a decision. */
import { useQuery } from '@tanstack/preact-query'
import { admin, read } from '../api/client.ts'
import { useCan, useSession } from '../api/session.ts'
import { formatCount } from '../format/numbers.ts'
import { limitRequestsKey, requestsRefreshMs } from './limit-requests.ts'

export interface PendingRequests {
  readonly count: number
  /** Whether there are more than `count`. */
  readonly hasMore: boolean
}

/** None for viewers who may not see them. */
export function usePendingRequests(): PendingRequests {
  const { hasDatabase } = useSession()
  const { data } = useQuery({
    queryKey: [...limitRequestsKey, 'pending'],
    queryFn: ({ signal }) =>
      read(admin.GET('/limit-requests', { params: { query: { status: 'pending', limit: 100 } }, signal })),
    enabled: useCan('admin:read') && hasDatabase,
    refetchInterval: requestsRefreshMs,
  })
  return { count: data?.data.length ?? 0, hasMore: data?.next !== undefined }
}

/** Such as `3`, or `100+`. */
export const shortCountOf = ({ count, hasMore }: PendingRequests): string =>
  `${formatCount(count)}${hasMore ? '+' : ''}`
