/** Schemas of the audit log. */
import { z } from 'zod'
import { timestamp } from './lists.ts'

export const AuditEntry = z.strictObject({
  id: z.string(),
  at: timestamp,
  caller: z.string().describe('Id of the caller, `command line`, or `(deleted)` if its tenant is deleted.'),
  key: z
    .strictObject({ id: z.string(), name: z.string() })
    .optional()
    .describe('The API key of the caller, with the name that it had then.'),
  action: z.string().describe('The operationId of the operation, such as revokeKey.'),
  target: z.string().optional().describe('Id of what was changed, or `(deleted)` if its tenant is deleted.'),
  targetName: z
    .string()
    .optional()
    .describe('Current name of the target, if it is a key, or of the key of a limit request.'),
  tenant: z.string().optional().describe('The tenant whose data was changed, if it is known.'),
  changes: z
    .record(z.string(), z.unknown())
    .describe(
      'The requested settings, and `before` with those that they replace. Decisions have the requested limits, canceled calls their model, caller and key. Never contains a secret.',
    ),
  outcome: z
    .enum(['success', 'failure', 'unknown'])
    .describe('unknown while the change runs, and if the process was killed meanwhile.'),
  error: z.string().optional().describe('Code of the error.'),
})

const moment = z.union(
  [z.iso.datetime({ offset: true }), z.iso.date()],
  "Expected a time such as '2027-01-31T12:00:00Z', or a day such as '2027-01-31'.",
)

export const AuditTimes = z.object({
  from: moment.describe('The earliest time, or a day in UTC.').optional(),
  to: moment.describe('The time before which the changes began, or the last day, in UTC.').optional(),
})
