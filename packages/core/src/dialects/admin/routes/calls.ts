/** Routes of the calls that run in all app processes. */
import type { Caller } from '../../../accounts/auth/caller.ts'
import { eventFrame, sse } from '../../../http/streams.ts'
import { internals, type Llm } from '../../../llm.ts'
import type { AdminRoute } from '../route.ts'
import { CanceledCall, RunningCallList } from '../schema/activity.ts'

/** Without a database, these are the calls of this process. */
const needsDatabase = false

export const callRoutes: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/calls',
    name: 'listCalls',
    summary: 'List the calls that run now in all app processes, the oldest first, at most 1,000.',
    needsDatabase,
    response: RunningCallList,
    handle: ({ llm }) => llm[internals].runningCalls.list(),
  },
  {
    method: 'POST',
    path: '/calls/:id/cancel',
    name: 'cancelCall',
    summary: 'End a running call. A call of another app process ends within two seconds.',
    needsDatabase,
    response: CanceledCall,
    describeBefore: async ({ llm, id }) => {
      const { data } = await llm[internals].runningCalls.list()
      const { model, key = '', caller, tenant } = data.find((call) => call.id === id) ?? {}
      const keyName = llm.keys.hasDatabase ? (await llm.keys.namesOf([key])).get(key) : undefined
      return { changes: { model, caller, keyName }, tenant: tenant || undefined }
    },
    handle: async ({ llm, id }) => ({ id, status: await llm[internals].runningCalls.cancel(id) }),
  },
  {
    method: 'GET',
    path: '/events',
    name: 'watchCalls',
    summary:
      'Watch the running calls as server-sent events `calls`: all of them (`data`, `isShared`), then each second with changes the `changed` ones and the ids of those that have `ended`. After a reconnect, the first event has all calls again.',
    needsDatabase,
    response: 'text/event-stream',
    handle: async ({ llm, caller, request, onError }) =>
      sse(framesOf(llm, caller, request.signal), { onError }),
  },
]

/** After this time, in ms, a reader connects again, so that its session and its scopes are checked again. */
const maxStreamMs = 10 * 60_000

async function* framesOf(llm: Llm, { key }: Caller, signal: AbortSignal): AsyncGenerator<string> {
  const { watchCalls } = await import('../../../running-calls/call-changes.ts')
  const endsAt = performance.now() + maxStreamMs
  let isRevoked = false
  const onRevoked = (): void => {
    isRevoked = true
  }
  const stopWatching = key && llm.keys.hasDatabase ? llm.keys.onRevoked(key.id, onRevoked) : undefined
  // A closing app does not wait for open pages.
  const isOver = (): boolean => signal.aborted || llm.isClosing || isRevoked || performance.now() > endsAt
  try {
    let id = 0
    for await (const event of watchCalls(llm[internals].runningCalls, isOver))
      yield `id: ${id++}\n${eventFrame('calls', JSON.stringify(event))}`
  } finally {
    stopWatching?.()
  }
}
