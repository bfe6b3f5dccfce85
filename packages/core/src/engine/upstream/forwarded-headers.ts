/** The header that tells another app with Modelmount the tenant of a call, which it neither limits nor charges. */
import { createHash } from 'node:crypto'
import type { EngineCall } from '../engine.ts'

/** Characters of the longest tenant that is sent as it is: headers of a request may have 16 KiB together. */
const maxTenantLength = 1_024

export function toForwardedHeaders({
  tenant = '',
  weight = 1,
  background = false,
  hasDefaults,
  requestedContextSize,
}: EngineCall): Readonly<Record<string, string>> {
  const fields = new URLSearchParams({
    tenant: tenant.length > maxTenantLength ? createHash('sha256').update(tenant).digest('hex') : tenant,
    weight: String(weight),
    background: String(background),
    ...(hasDefaults && { defaults: 'true' }),
    ...(requestedContextSize !== undefined && { contextSize: String(requestedContextSize) }),
  })
  return { 'x-modelmount-forwarded': fields.toString() }
}
