/** What the app does now: its calls, queues and loaded models, for `modelmount top` and dashboards. */
import type { LiveCall } from '../diagnostics/live-calls.ts'
import type { LoadedModel } from '../engine/engine.ts'
import { json } from '../http/respond.ts'
import { internals, type Llm } from '../llm.ts'
import { checkMount } from './check-mount.ts'
import { createOperatorDialect } from './operator-route.ts'
import { createDialectTable, type DialectTable } from './table.ts'

export interface Activity {
  /** The oldest calls that run now, at most 1,000. */
  readonly calls: readonly LiveCall[]
  /** Number of all calls that run now. */
  readonly callCount: number
  /** Calls that wait in the queue of each model. */
  readonly queues: readonly { readonly model: string; readonly waiting: number }[]
  readonly models: readonly Omit<LoadedModel, 'settings'>[]
}

const maxCalls = 1_000

/** Has the calls that began after `watchActivity()`. */
export function readActivity(llm: Llm): Activity {
  const { liveCalls, queues } = llm[internals]
  const calls = liveCalls.list()
  return {
    calls: calls.slice(0, maxCalls),
    callCount: calls.length,
    queues: queues().filter(({ waiting }) => waiting > 0),
    models: llm.loaded().map(({ settings: _, ...model }) => model),
  }
}

export const watchActivity = (llm: Llm): void => llm[internals].liveCalls.listen()

/** Returns `GET /activity` without the rest of the admin API. */
export const activityRoutes = (): DialectTable => ({
  ...createDialectTable([
    createOperatorDialect('activity', '/activity', async (llm) => json(readActivity(llm))),
  ]),
  checkMount: (llm, authenticate) => {
    checkMount(llm, authenticate)
    watchActivity(llm)
  },
})
