/** What the app does now: its calls, queues and loaded models. */
import { json } from '../http/respond.ts'
import { internals } from '../llm.ts'
import { checkMount } from './check-mount.ts'
import { createOperatorDialect } from './operator-route.ts'
import { createDialectTable, type DialectTable } from './table.ts'

/** Returns `GET /activity` without the rest of the admin API. It has the calls that began after it was mounted. */
export const activityRoutes = (): DialectTable => ({
  ...createDialectTable([
    createOperatorDialect('activity', '/activity', async (llm) => json(llm[internals].liveCalls.activity())),
  ]),
  checkMount: (llm, authenticate) => {
    checkMount(llm, authenticate)
    llm[internals].liveCalls.listen()
  },
})
