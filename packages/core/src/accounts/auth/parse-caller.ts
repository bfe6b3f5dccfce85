/**
 * Validates callers that the host app passes, with the same rules as API keys. Otherwise a misspelt limit
 * would be ignored silently.
 */
import { z } from 'zod'
import { formatFieldPath, LlmError } from '../../errors.ts'
import { KeySettings } from '../keys/schema.ts'
import type { Caller } from './caller.ts'

const { scopes, limits, spendingLimit } = KeySettings.shape
const id = z.union([z.string().min(1), z.int(), z.bigint()], 'Expected a non-empty string.')

const callerSchema = z.strictObject({
  id,
  tenant: id.optional(),
  // An empty list is valid, unlike in an API key. `authorize` then rejects each request with `permission`.
  scopes: z.array(scopes.unwrap().element).optional(),
  models: z.array(z.string()).optional(),
  limits,
  tier: z.string().min(1).optional(),
  spendingLimit,
  key: z.object({ id: z.string(), name: z.string() }).optional(),
})

/**
 * Converts numeric ids to strings. Throws an `LlmError` `internal` for an invalid field, because the mistake
 * is in the host app.
 */
export function parseCaller(given: unknown): Caller {
  const result = callerSchema.safeParse(given)
  if (!result.success) throw invalidCaller(result.error.issues[0] as z.core.$ZodIssue)
  const { id, tenant } = result.data
  if (typeof id === 'string' && typeof tenant !== 'number' && typeof tenant !== 'bigint')
    return given as Caller
  return { ...(given as Caller), id: `${id}`, ...(tenant !== undefined && { tenant: `${tenant}` }) }
}

function invalidCaller({ path, message }: z.core.$ZodIssue): LlmError {
  const param = ['caller', formatFieldPath(path)].filter(Boolean).join('.')
  return new LlmError('internal', `Invalid caller from the app: ${param}: ${message}`, {
    setup: true,
  })
}
