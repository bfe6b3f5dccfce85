/** Routes of the audit log. */
import { parseSettings } from '../../../accounts/keys/schema.ts'
import { type AdminRoute, parsePage, toPage } from '../route.ts'
import { AuditEntry, AuditTimes } from '../schema/audit.ts'
import { After, Limit, pageOf } from '../schema/lists.ts'

export const auditRoutes: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/audit',
    name: 'listAuditEntries',
    summary: 'List the changes of the last year, newest first.',
    query: {
      caller: AuditEntry.shape.caller.describe('Id of the caller, or the current name of its key.'),
      action: AuditEntry.shape.action,
      target: AuditEntry.shape.target.unwrap().describe('Id of the target, or the current name of a key.'),
      from: AuditTimes.shape.from.unwrap(),
      to: AuditTimes.shape.to.unwrap(),
      limit: Limit,
      after: After,
    },
    response: pageOf(AuditEntry),
    handle: async ({ llm, query }) => {
      const times = parseSettings(AuditTimes, { from: query('from'), to: query('to') })
      const [from, to] = [toDate(times.from), toDate(times.to, dayMs)]
      const filters = { caller: query('caller'), action: query('action'), target: query('target') }
      const page = parsePage(query)
      return toPage(await llm.audit.list({ ...filters, from, to, ...page }), page, ({ id }) => id)
    },
  },
]

/** @param dayLengthMs added to a day without a time */
const toDate = (moment: string | undefined, dayLengthMs = 0): Date | undefined =>
  moment === undefined ? undefined : new Date(Date.parse(moment) + (moment.includes('T') ? 0 : dayLengthMs))

const dayMs = 86_400_000
