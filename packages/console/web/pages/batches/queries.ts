/** What the pages of batches read. */
import { useQuery, useQueryClient } from '@tanstack/preact-query'
import { admin, read } from '../../api/client.ts'
import type { ResponseOf } from '../../api/types.ts'

export type Batch = ResponseOf<'getBatch'>
export type BatchStatus = Batch['status']

export const batchesKey = ['batches'] as const
const batchKey = (id: string) => [...batchesKey, 'one', id] as const

/** How often to read a batch that still changes, in ms. Hidden tabs read nothing. */
const changingMs = 5_000

export const isEnded = ({ status }: Pick<Batch, 'status'>): boolean =>
  status === 'ended' || status === 'failed'

/** @returns whether and how often to read again */
export const refetchIntervalOf = (batches: readonly Pick<Batch, 'status'>[] | undefined): number | false =>
  batches?.some((batch) => !isEnded(batch)) ? changingMs : false

export const useBatch = (id: string) =>
  useQuery({
    queryKey: batchKey(id),
    queryFn: ({ signal }): Promise<Batch> =>
      read(admin.GET('/batches/{id}', { params: { path: { id } }, signal })),
    refetchInterval: ({ state }) => refetchIntervalOf(state.data && [state.data]),
  })

/** Returns a function that cancels a batch, and reads the lists of batches again. */
export function useCancelBatch(id: string): () => Promise<void> {
  const client = useQueryClient()
  return async () => {
    const batch = await read(admin.POST('/batches/{id}/cancel', { params: { path: { id } } }))
    client.setQueryData(batchKey(id), batch)
    await client.invalidateQueries({ queryKey: batchesKey })
  }
}
