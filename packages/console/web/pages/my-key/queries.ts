/** What the page reads about the viewer. */
import { admin, read } from '../../api/client.ts'
import type { ResponseOf } from '../../api/types.ts'
import { limitRequestsKey, requestsRefreshMs } from '../../limits/limit-requests.ts'

export type Me = ResponseOf<'getMe'>

interface Call {
  readonly signal: AbortSignal
}

export const meQuery = {
  queryKey: ['me'],
  queryFn: ({ signal }: Call) => read(admin.GET('/me', { signal })),
  refetchInterval: requestsRefreshMs,
}

const refreshMs = 5_000

export const limitsQuery = {
  queryKey: ['my-limits'],
  queryFn: async ({ signal }: Call) => (await read(admin.GET('/me/limits', { signal }))).data,
  refetchInterval: refreshMs,
}

export const requestsQuery = {
  queryKey: [...limitRequestsKey, 'mine'],
  queryFn: async ({ signal }: Call) => (await read(admin.GET('/me/limit-requests', { signal }))).data,
  refetchInterval: requestsRefreshMs,
}
