/** Reads the prices of the app. */
import { useQuery } from '@tanstack/preact-query'
import { admin, read } from '../api/client.ts'
import { useCan, useSession } from '../api/session.ts'
import type { PriceReport } from './prices.ts'

/** Undefined while the prices are unknown, and for viewers who may not see them. */
export function usePrices(): PriceReport | undefined {
  const { hasDatabase } = useSession()
  return useQuery({
    queryKey: ['prices'],
    queryFn: ({ signal }) => read(admin.GET('/prices', { signal })),
    enabled: useCan('admin:read') && hasDatabase,
    staleTime: 60_000,
    retry: false,
  }).data
}
