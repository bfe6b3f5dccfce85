/** The cache of all server data. */
import { MutationCache, QueryCache, QueryClient } from '@tanstack/preact-query'
import { ApiError } from './errors.ts'
import { sessionKey } from './session.ts'

export function createQueryClient(): QueryClient {
  const onError = (error: unknown): void => {
    // The session has expired, or its key was revoked.
    if (isStatus(error, 401)) void client.invalidateQueries({ queryKey: sessionKey })
  }
  const client: QueryClient = new QueryClient({
    queryCache: new QueryCache({ onError }),
    mutationCache: new MutationCache({ onError }),
    defaultOptions: {
      // 'always': the app may run on this machine, which needs no network.
      queries: { networkMode: 'always', staleTime: 5_000, retry: isWorthRetrying },
      mutations: { networkMode: 'always' },
    },
  })
  return client
}

const isWorthRetrying = (failures: number, error: unknown): boolean =>
  failures < 2 && error instanceof ApiError && (error.status === 0 || error.status >= 502)

const isStatus = (error: unknown, status: number): boolean =>
  error instanceof ApiError && error.status === status
