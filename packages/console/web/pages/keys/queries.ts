/** What the pages of keys read. */
import { useQuery, useQueryClient } from '@tanstack/preact-query'
import { admin, read } from '../../api/client.ts'
import type { ApiKey } from '../../api/types.ts'

export const keysKey = ['keys'] as const
const keyKey = (id: string) => [...keysKey, 'one', id] as const

export const keyQuery = (id: string) => ({
  queryKey: keyKey(id),
  queryFn: ({ signal }: { readonly signal: AbortSignal }): Promise<ApiKey> =>
    read(admin.GET('/keys/{id}', { params: { path: { id } }, signal })),
})

export const useKey = (id: string) => useQuery(keyQuery(id))

/** Returns a function that puts a changed key into the cache, and reads the lists of keys again. */
export function useKeyChanged(): (key: ApiKey) => void {
  const client = useQueryClient()
  return (key) => {
    // Changes answer without the spending. It is read again, and shown as it was meanwhile.
    client.setQueryData<ApiKey>(keyKey(key.id), (before) => ({
      ...key,
      ...(before?.spending && key.spendingLimit && { spending: before.spending }),
    }))
    void client.invalidateQueries({ queryKey: keysKey })
  }
}
