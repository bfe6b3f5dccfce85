/** What the pages of keys read. */
import { useQuery, useQueryClient } from '@tanstack/preact-query'
import { admin, read, request } from '../../api/client.ts'
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

/** Names of the models that the viewer may use. Empty if the viewer may not list models. */
export const useModelNames = () =>
  useQuery({
    queryKey: ['model-names'],
    queryFn: async ({ signal }): Promise<readonly string[]> => {
      const response = await request('llm/v1/models', { signal })
      const { data } = (await response.json()) as { data: readonly { id: string }[] }
      return data.map(({ id }) => id)
    },
    retry: false,
    staleTime: 60_000,
  }).data ?? []
