/** What became of a request for higher limits. */
import type { LimitRequest } from '../api/types.ts'
import { Badge } from '../components/text/badge.tsx'

const tones = { pending: 'warning', approved: 'success', refused: 'danger' } as const
const names = { pending: 'Pending', approved: 'Approved', refused: 'Refused' } as const

export const RequestStatus = ({ status }: Pick<LimitRequest, 'status'>) => (
  <Badge tone={tones[status]}>{names[status]}</Badge>
)
