/** Routes of the batches of all tenants. */
import { parseSettings } from '../../../accounts/keys/schema.ts'
import type { Batch } from '../../../batches/batch.ts'
import { jsonLines } from '../../../http/streams.ts'
import { type AdminRoute, parsePage, toPage } from '../route.ts'
import * as schema from '../schema/batches.ts'
import { After, Limit, pageOf } from '../schema/lists.ts'

/** Batches may have a database although the app has none, and reject calls if there is none. */
const needsDatabase = false

export const batchRoutes: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/batches',
    name: 'listBatches',
    summary: 'List the batches of all tenants, newest first.',
    query: { status: schema.BatchStatus, limit: Limit, after: After },
    needsDatabase,
    response: pageOf(schema.Batch),
    handle: async ({ llm, query }) => {
      const { status } = parseSettings(schema.BatchFilters, { status: query('status') })
      const page = parsePage(query)
      const { batches } = await llm.batches.list({ status, ...page })
      return toPage(batches.map(toAnswer), page, ({ id }) => id)
    },
  },
  {
    method: 'GET',
    path: '/batches/:id',
    name: 'getBatch',
    summary: 'Get a batch.',
    needsDatabase,
    response: schema.Batch,
    handle: async ({ llm, id }) => toAnswer(await llm.batches.get(id)),
  },
  {
    method: 'POST',
    path: '/batches/:id/cancel',
    name: 'cancelBatch',
    summary: 'Cancel a batch. Requests that run already end. A batch that has ended does not change.',
    needsDatabase,
    response: schema.Batch,
    handle: async ({ llm, id }) => toAnswer(await llm.batches.cancel(id)),
  },
  {
    method: 'GET',
    path: '/batches/:id/results',
    name: 'getBatchResults',
    summary: 'Get the results of a batch that has ended, one JSON object per line.',
    // The only route of this API with answers of models to others: a key for metrics must not read them.
    scope: 'admin',
    needsDatabase,
    response: 'application/x-jsonl',
    handle: async ({ llm, id, onError }) => jsonLines(await llm.batches.resultLines(id), { onError }),
  },
]

function toAnswer({ format, owner, inputFileId, outputFileId, errorFileId, ...batch }: Batch) {
  return { ...batch, api: format, tenant: '', ...owner }
}
