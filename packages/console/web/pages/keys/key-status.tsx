/** Whether a key is valid. */
import type { ApiKey } from '../../api/types.ts'
import { Badge } from '../../components/text/badge.tsx'

const tones = { active: 'success', expired: 'neutral', revoked: 'danger' } as const
const names = { active: 'Active', expired: 'Expired', revoked: 'Revoked' } as const
const soonMs = 7 * 86_400_000

export function KeyStatus({ keyOf: { status, expiresAt } }: { readonly keyOf: ApiKey }) {
  const isSoon = expiresAt !== undefined && new Date(expiresAt).getTime() - Date.now() < soonMs
  return status === 'active' && isSoon ? (
    <Badge tone="warning">Expires soon</Badge>
  ) : (
    <Badge tone={tones[status]}>{names[status]}</Badge>
  )
}
