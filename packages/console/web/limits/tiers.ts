/** The tiers of the app. */
import { request } from '../api/client.ts'
import type { Limits } from '../api/types.ts'

export interface Tier extends Limits {
  readonly name: string
  readonly weight: number
  /** Number of keys of this tier. */
  readonly keys: number
}

export const tiersQuery = {
  queryKey: ['tiers'],
  queryFn: async ({ signal }: { readonly signal: AbortSignal }): Promise<readonly Tier[]> => {
    const response = await request('admin/tiers', { signal })
    return ((await response.json()) as { data: readonly Tier[] }).data
  },
}
