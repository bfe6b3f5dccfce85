/** A progress bar of one operation: `pulling 8eeb52dfb3bb:  42% ▕████      ▏ 1.9 GB/4.7 GB   31 MB/s   1m30s`. */
import { humanBytes, shortDuration } from './human.ts'

export type ProgressUnit = 'bytes' | 'requests' | 'tokens' | 'percent'

export interface Operation {
  readonly status: string
  readonly total: number
  readonly completed: number
  /** What was complete before the operation started. */
  readonly resumed: number
  readonly elapsedMs: number
  /** @default 'bytes' */
  readonly unit?: ProgressUnit | undefined
}

export function bar(operation: Operation, columns: number): string {
  const { status, total, completed } = operation
  const share = total > 0 ? Math.min(completed / total, 1) : 0
  const before = `${status}: ${String(Math.floor(share * 100)).padStart(3)}% `
  const after = ` ${amount(operation, share)}`
  const width = columns - before.length - after.length - 3
  if (width < 1) return before.slice(0, columns - 1)
  return `${before}▕${'█'.repeat(Math.floor(share * width)).padEnd(width)}▏${after}`
}

function amount({ total, completed, resumed, elapsedMs, unit = 'bytes' }: Operation, share: number): string {
  if (unit === 'percent') return ''
  const { whole, part, rate } = formats[unit]
  if (share === 1) return whole(total).padEnd(30)
  const perMs = (completed - resumed) / Math.max(elapsedMs, 1)
  const parts = `${part(completed)}/${part(total)}`.padEnd(15)
  if (perMs <= 0) return parts.padEnd(30)
  const remaining = shortDuration((total - completed) / perMs)
  return `${parts}${`${rate(perMs * 1_000)}/s`.padStart(8)}${remaining.padStart(7)}`.padEnd(30)
}

type Format = (count: number) => string
type Formats = Readonly<Record<'whole' | 'part' | 'rate', Format>>

const toRate: Format = (perSecond) => (perSecond < 10 ? perSecond.toFixed(1) : `${Math.round(perSecond)}`)
const countOf =
  (one: string): Format =>
  (count) =>
    count === 1 ? `1 ${one}` : `${count} ${one}s`

const formats: Readonly<Record<Exclude<ProgressUnit, 'percent'>, Formats>> = {
  bytes: { whole: humanBytes, part: humanBytes, rate: humanBytes },
  requests: { whole: countOf('request'), part: String, rate: toRate },
  tokens: { whole: countOf('token'), part: String, rate: toRate },
}
