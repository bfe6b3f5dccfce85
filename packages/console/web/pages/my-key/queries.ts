/** What the page reads about the viewer. */
import { request } from '../../api/client.ts'
import type { Scope } from '../../api/session.ts'
import type { ApiKey, LimitRequest, LimitStatus } from '../../api/types.ts'
import type { PageOf } from '../../components/table/use-pages.ts'
import { limitRequestsKey } from '../../limits/limit-requests.ts'

export interface Me {
  readonly caller: { readonly id: string; readonly tenant: string; readonly scopes: readonly Scope[] }
  /** Absent for users of the host app. */
  readonly key?: ApiKey
}

interface Call {
  readonly signal: AbortSignal
}

const get = async <Body>(path: string, { signal }: Call): Promise<Body> =>
  (await request(`admin/me${path}`, { signal })).json() as Promise<Body>

export const meQuery = { queryKey: ['me'], queryFn: (call: Call) => get<Me>('', call) }

const refreshMs = 5_000

export const limitsQuery = {
  queryKey: ['my-limits'],
  queryFn: async (call: Call) => (await get<{ data: readonly LimitStatus[] }>('/limits', call)).data,
  refetchInterval: refreshMs,
}

export const requestsQuery = {
  queryKey: [...limitRequestsKey, 'mine'],
  queryFn: async (call: Call) => (await get<PageOf<LimitRequest>>('/limit-requests', call)).data,
}
