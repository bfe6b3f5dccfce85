/** How long ago something began. */
import { formatDuration } from '../../format/time.ts'

/** In whole seconds, because the page is drawn each second. */
export function formatAge(startedMs: number, now: number): string {
  const seconds = Math.max(0, Math.floor((now - startedMs) / 1_000))
  return seconds < 10 ? `${seconds} s` : formatDuration(seconds * 1_000)
}
