/** Who decided a request for higher limits, when, and with which note. */
import type { LimitRequest } from '../api/types.ts'
import { Time } from '../components/text/time.tsx'

export const DecisionText = ({
  request: { decidedAt, decidedBy, note },
}: {
  readonly request: LimitRequest
}) =>
  decidedAt === undefined ? null : (
    <p class="muted">
      Decided <Time at={decidedAt} isRelative />
      {decidedBy !== undefined && ` by ${decidedBy}`}
      {note !== undefined && `: ${note}`}
    </p>
  )
