/** Routes of the calls that run in all app processes. */
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
    handle: async ({ llm, request, onError }) => sse(framesOf(llm, request.signal), { onError }),
  },
]

async function* framesOf(llm: Llm, signal: AbortSignal): AsyncGenerator<string> {
  const { watchCalls } = await import('../../../running-calls/call-changes.ts')
  // A closing app does not wait for open pages.
  const isOver = (): boolean => signal.aborted || llm.isClosing
  let id = 0
  for await (const event of watchCalls(llm[internals].runningCalls, isOver))
    yield `id: ${id++}\n${eventFrame('calls', JSON.stringify(event))}`
}
