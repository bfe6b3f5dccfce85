/** A progress bar of one transfer: `pulling 8eeb52dfb3bb:  42% ▕████      ▏ 1.9 GB/4.7 GB   31 MB/s   1m30s`. */
import { humanBytes, shortDuration } from './human.ts'

export interface Transfer {
  readonly status: string
  readonly totalBytes: number
  readonly completedBytes: number
  /** Bytes that were present before the transfer started. */
  readonly resumedBytes: number
  readonly elapsedMs: number
}

export function bar(transfer: Transfer, columns: number): string {
  const { status, totalBytes, completedBytes } = transfer
  const share = totalBytes > 0 ? Math.min(completedBytes / totalBytes, 1) : 0
  const before = `${status}: ${String(Math.floor(share * 100)).padStart(3)}% `
  const after = ` ${amount(transfer, share)}`
  const width = columns - before.length - after.length - 3
  if (width < 1) return before.slice(0, columns - 1)
  return `${before}▕${'█'.repeat(Math.floor(share * width)).padEnd(width)}▏${after}`
}

function amount({ totalBytes, completedBytes, resumedBytes, elapsedMs }: Transfer, share: number): string {
  if (share === 1) return humanBytes(totalBytes).padEnd(30)
  const perMs = (completedBytes - resumedBytes) / Math.max(elapsedMs, 1)
  const sizes = `${humanBytes(completedBytes)}/${humanBytes(totalBytes)}`.padEnd(15)
  if (perMs <= 0) return sizes.padEnd(30)
  const remaining = shortDuration((totalBytes - completedBytes) / perMs)
  return `${sizes}${`${humanBytes(perMs * 1_000)}/s`.padStart(8)}${remaining.padStart(7)}`.padEnd(30)
}
