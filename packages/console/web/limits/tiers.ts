/** The tiers of the app. */
import { admin, read } from '../api/client.ts'
import type { ResponseOf } from '../api/types.ts'

export type Tier = ResponseOf<'listTiers'>['data'][number]

export const tiersQuery = {
  queryKey: ['tiers'],
  queryFn: async ({ signal }: { readonly signal: AbortSignal }): Promise<readonly Tier[]> =>
    (await read(admin.GET('/tiers', { signal }))).data,
}
