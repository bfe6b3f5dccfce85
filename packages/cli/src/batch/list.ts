/** Lists the batches of both APIs together. */
import { type Server, ServerError } from '../server.ts'
import { anthropicApi } from './anthropic.ts'
import type { BatchApi, BatchListPage, BatchState } from './batch-api.ts'
import { openaiApi } from './openai.ts'

/** Returns one page, the newest batch first. @param after last batch of the previous page */
export async function listAll(
  server: Server,
  limit: number,
  after: string | undefined,
): Promise<BatchState[]> {
  const page: BatchState[] = []
  let isAfter = after === undefined
  for await (const batch of merged(server, limit)) {
    if (isAfter) page.push(batch)
    else isAfter = batch.id === after
    if (page.length === limit) break
  }
  return page
}

/** Yields the newest of the next batches of both lists, again and again. */
async function* merged(server: Server, limit: number): AsyncGenerator<BatchState> {
  const open = await Promise.all(
    [anthropicApi, openaiApi].map(async (api) => {
      const list = allOf(server, api, limit)
      return { list, next: (await list.next()).value }
    }),
  )
  for (;;) {
    const [newest] = open.toSorted((a, b) => timeOf(b.next) - timeOf(a.next))
    if (!newest?.next) return
    yield newest.next
    newest.next = (await newest.list.next()).value
  }
}

const timeOf = (batch: BatchState | undefined): number => batch?.createdAt.getTime() ?? 0

async function* allOf(server: Server, api: BatchApi, limit: number): AsyncGenerator<BatchState, undefined> {
  for (let after: string | undefined; ; ) {
    const { batches, hasMore } = await api.list(server, limit, after).catch(emptyIfUnknown)
    yield* batches
    after = batches.at(-1)?.id
    if (!hasMore || after === undefined) return undefined
  }
}

/** An app may serve the routes of one API only. */
function emptyIfUnknown(error: unknown): BatchListPage {
  if (error instanceof ServerError && error.status === 404) return { batches: [], hasMore: false }
  throw error
}
