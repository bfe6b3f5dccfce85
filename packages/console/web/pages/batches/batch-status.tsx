/** State and progress of a batch. */
import { Bar } from '../../components/bar.tsx'
import { Badge, type Tone } from '../../components/text/badge.tsx'
import { progressOf, progressText } from './progress.ts'
import type { Batch, BatchStatus } from './queries.ts'

export const statusNames = {
  validating: 'Reading requests',
  in_progress: 'Running',
  canceling: 'Canceling',
  ended: 'Ended',
  failed: 'Failed',
} as const satisfies Record<BatchStatus, string>

const tones = {
  validating: 'neutral',
  in_progress: 'accent',
  canceling: 'warning',
  ended: 'success',
  failed: 'danger',
} as const satisfies Record<BatchStatus, Tone>

export const BatchStatusBadge = ({ status }: { readonly status: BatchStatus }) => (
  <Badge tone={tones[status]}>{statusNames[status]}</Badge>
)

export const BatchProgress = ({ batch }: { readonly batch: Batch }) =>
  batch.status === 'failed' ? (
    <span class="muted">None has run</span>
  ) : (
    <div class="bar-with-text">
      <span class="number">{progressText(batch)}</span>
      <Bar label="Progress" kind="progress" value={progressOf(batch)} text={progressText(batch)} />
    </div>
  )
