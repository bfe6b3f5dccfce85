/** The batches and files of one caller, or of the app itself. */
import { setTimeout as delay } from 'node:timers/promises'
import { type Caller, tenantOf } from '../accounts/auth/caller.ts'
import { checkLimit } from '../accounts/page.ts'
import { invalidRequest, LlmError } from '../errors.ts'
import type { Batch, ItemOutcome } from './batch.ts'
import type { BatchActions } from './batch-actions.ts'
import type { OpenedBatches } from './open-batches.ts'
import type { BatchScope } from './store/batch-store.ts'

/** @param caller undefined for the app itself, which sees the batches and files of all tenants */
export function createBatchClient(
  open: () => Promise<OpenedBatches>,
  caller: Caller | undefined,
): BatchActions {
  const scope: BatchScope = caller ? { tenant: tenantOf(caller) } : {}
  const get = async (id: string): Promise<Batch> => (await open()).store.get(id, scope)

  async function* watch(
    id: string,
    { signal }: { readonly signal?: AbortSignal | undefined } = {},
  ): AsyncGenerator<Batch> {
    const opened = await open()
    for (let last = ''; ; ) {
      signal?.throwIfAborted()
      const batch = await opened.store.get(id, scope)
      const state = JSON.stringify([batch.status, batch.counts])
      if (state !== last) yield batch
      last = state
      if (hasEnded(batch)) return
      await delay(watchEveryMs, undefined, { signal })
    }
  }

  return {
    create: async (requests, options = {}) => (await open()).create(requests, caller, options),
    createFromJson: async (body, options = {}) => (await open()).createFromJson(body, caller, options),
    createFromFile: async (fileId, options) => {
      const opened = await open()
      // Rejects a file of another tenant.
      const { id } = await opened.files.get(fileId, scope.tenant)
      return opened.createFromFile(id, caller, options)
    },
    get,
    list: async ({ format, status, limit = 20, ...page } = {}) =>
      (await open()).store.list({ ...scope, format, status }, { limit: checkLimit(limit), ...page }),
    waitUntilEnded: async (id, options) => {
      let last: Batch | undefined
      for await (const batch of watch(id, options)) last = batch
      return last as Batch
    },
    cancel: async (id) => {
      const opened = await open()
      const batch = await opened.store.cancel(id, scope)
      opened.wake()
      return batch
    },
    delete: async (id) => {
      const opened = await open()
      await opened.store.delete(id, scope)
      opened.wake()
    },
    results: async function* (id) {
      for await (const { customId, outcome, line } of readResults(await open(), expectEnded(await get(id))))
        yield { customId, outcome, line: JSON.parse(line) as object }
    },
    resultLines: async (id) => {
      const opened = await open()
      return toLines(readResults(opened, expectEnded(await opened.store.get(id, scope))))
    },
    watch,
    files: {
      create: async (file, content) => {
        const { files, options } = await open()
        const { maxBatchBytes, fileRetentionMs } = options
        const settings = async () => ({
          expiresAfterMs: fileRetentionMs,
          ...(typeof file === 'function' ? await file() : file),
        })
        return files.create(tenantOf(caller), settings, content, maxBatchBytes)
      },
      get: async (id) => (await open()).files.get(id, scope.tenant),
      list: async (query) => (await open()).files.list(scope.tenant, query),
      delete: async (id) => {
        const opened = await open()
        await opened.files.delete(id, scope.tenant)
        opened.wake()
      },
      read: async (id) => {
        const opened = await open()
        const file = await opened.files.get(id, scope.tenant)
        if (!file.results) return opened.files.read(file)
        const { batch, kind } = file.results
        return toLines(readResults(opened, await opened.store.get(batch, scope), kind), '\n')
      },
    },
  }
}

const watchEveryMs = 200

const hasEnded = ({ status }: Batch): boolean => status === 'ended' || status === 'failed'

function expectEnded(batch: Batch): Batch {
  if (!hasEnded(batch))
    throw invalidRequest(
      `Batch ${batch.id} has not ended, so it has no results yet. Its status is ${batch.status}.`,
    )
  if (batch.archivedAt) throw resultsDeleted(batch.id)
  return batch
}

/** Throws an `LlmError` `not_found` if the results are deleted meanwhile, since they would look complete. */
async function* readResults(
  { store, apis }: OpenedBatches,
  { id, format }: Batch,
  kind?: 'output' | 'error',
): AsyncGenerator<{ readonly customId: string; readonly outcome: ItemOutcome; readonly line: string }> {
  const api = await apis.of(format)
  for await (const rows of store.results(id, kind))
    for (const { number, custom_id, status, result } of rows) {
      const customId = JSON.parse(custom_id) as string
      const line =
        result ?? api.renderNotRun({ batch: id, number, customId }, status as 'canceled' | 'expired')
      yield { customId, outcome: status, line }
    }
  const now = await store.get(id, {})
  if (now.archivedAt) throw resultsDeleted(id)
}

const resultsDeleted = (id: string): LlmError =>
  new LlmError('not_found', `The results of batch ${id} are no longer stored.`)

async function* toLines(results: AsyncIterable<{ readonly line: string }>, end = ''): AsyncGenerator<string> {
  for await (const { line } of results) yield `${line}${end}`
}
