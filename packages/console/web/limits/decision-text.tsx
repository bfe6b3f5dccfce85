/** When a request for higher limits was decided, with which note. */
import type { ComponentChildren } from 'preact'
import type { LimitRequest } from '../api/types.ts'
import { Time } from '../components/text/time.tsx'

export interface DecisionTextProps {
  readonly request: LimitRequest
  /** Who has decided, for viewers who know these callers. */
  readonly by?: ComponentChildren
}

export const DecisionText = ({ request: { decidedAt, note }, by }: DecisionTextProps) =>
  decidedAt === undefined ? null : (
    <p class="muted">
      Decided <Time at={decidedAt} isRelative />
      {by !== undefined && <> by {by}</>}
      {note !== undefined && `: ${note}`}
    </p>
  )
