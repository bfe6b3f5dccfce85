/** Waits for the end of a batch, and shows its progress. */
import { setTimeout as delay } from 'node:timers/promises'
import { type ProgressLine, showProgress, type Terminal } from '../format/progress.ts'
import { type Server, ServerError } from '../server.ts'
import { type BatchApi, type BatchState, completedOf } from './batch-api.ts'
import { summaryOf } from './describe.ts'

/** Resolves with the batch when it has ended. */
export async function waitForEnd(
  server: Server,
  api: BatchApi,
  id: string,
  out: Terminal,
): Promise<BatchState> {
  let last: BatchState | undefined
  async function* progress(): AsyncGenerator<ProgressLine> {
    for await (last of watch(() => api.get(server, id))) yield toLine(last)
    if (last) yield { status: `ended: ${summaryOf(last)}` }
  }
  await showProgress(progress(), out)
  return last as BatchState
}

function toLine(batch: BatchState): ProgressLine {
  const { status, isEnded, total } = batch
  if (total === 0) return { status }
  return { status: isEnded ? 'in_progress' : status, total, completed: completedOf(batch), unit: 'requests' }
}

/** Yields the batch at once, and when it has changed, until it has ended. */
async function* watch(get: () => Promise<BatchState>): AsyncGenerator<BatchState> {
  const startedMs = performance.now()
  for (let last = ''; ; ) {
    // Fails at once for a wrong id or host.
    const batch = last === '' ? await get() : await retrying(get)
    const state = JSON.stringify(batch)
    if (state !== last) yield batch
    last = state
    if (batch.isEnded) return
    await delay(Math.min(Math.max((performance.now() - startedMs) / 10, pollMs.least), pollMs.most))
  }
}

const pollMs = { least: 100, most: 2_000 }

/** Outlives the restart of a server, because a batch does. */
async function retrying(get: () => Promise<BatchState>): Promise<BatchState> {
  for (let attempt = 1; ; attempt++)
    try {
      return await get()
    } catch (cause) {
      const isPermanent = cause instanceof ServerError && cause.status < 500 && cause.status !== 429
      if (isPermanent || attempt === maxAttempts) throw cause
      await delay(Math.min(pollMs.least * 2 ** attempt, pollMs.most))
    }
}

/** About a minute. */
const maxAttempts = 35
