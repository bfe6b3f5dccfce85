/** The running calls, from the events of the server. */
import type { ResponseOf } from '../../api/types.ts'

/** A running call of one of the app's processes. */
export type LiveCall = ResponseOf<'listCalls'>['data'][number]

/** A call, with the time when it began by the clock of the browser. */
export interface TimedCall extends LiveCall {
  readonly startedMs: number
}

export interface LiveCalls {
  /** The oldest first. */
  readonly calls: readonly TimedCall[]
  /** Whether these are the calls of all processes of the app. */
  readonly isShared: boolean
}

/** Data of the event `calls`: all calls, as the first event has them, or what has changed since the one before. */
export type CallsEvent =
  | { readonly data: readonly LiveCall[]; readonly isShared: boolean }
  | { readonly changed?: readonly LiveCall[]; readonly ended?: readonly string[] }

/** @param nowMs when the event arrived */
export function applyEvent(before: LiveCalls | undefined, event: CallsEvent, nowMs: number): LiveCalls {
  // The clocks of the server and of the browser may differ, so that only the age counts.
  const toTimed = (call: LiveCall): TimedCall => ({ ...call, startedMs: nowMs - call.ageMs })
  if ('data' in event) return { calls: sortByAge(event.data.map(toTimed)), isShared: event.isShared }
  const { changed = [], ended = [] } = event
  const calls = new Map((before?.calls ?? []).map((call) => [call.id, call]))
  for (const call of changed) calls.set(call.id, toTimed(call))
  for (const id of ended) calls.delete(id)
  return { calls: sortByAge([...calls.values()]), isShared: before?.isShared ?? false }
}

const sortByAge = (calls: readonly TimedCall[]): readonly TimedCall[] =>
  [...calls].sort((a, b) => a.startedAt.localeCompare(b.startedAt) || a.id.localeCompare(b.id))

export interface LiveSums {
  readonly running: number
  readonly queued: number
  readonly tokensPerSecond: number
  readonly processes: number
}

export const sumCalls = (calls: readonly LiveCall[]): LiveSums => ({
  running: calls.filter(({ phase }) => phase !== 'queued').length,
  queued: calls.filter(({ phase }) => phase === 'queued').length,
  tokensPerSecond: calls.reduce(
    (sum, { phase, tokensPerSecond }) => sum + (phase === 'decoding' ? tokensPerSecond : 0),
    0,
  ),
  processes: new Set(calls.map(({ process }) => process.id)).size,
})

export interface Queue {
  readonly model: string
  readonly waiting: number
  /** When the call that waits longest began. */
  readonly oldestMs: number
}

/** Calls that wait, by model, the longest queue first. */
export function queuesOf(calls: readonly TimedCall[]): readonly Queue[] {
  const queues = new Map<string, Queue>()
  for (const { model, phase, startedMs } of calls) {
    if (phase !== 'queued') continue
    const { waiting, oldestMs } = queues.get(model) ?? { waiting: 0, oldestMs: startedMs }
    queues.set(model, { model, waiting: waiting + 1, oldestMs: Math.min(oldestMs, startedMs) })
  }
  return [...queues.values()].sort((a, b) => b.waiting - a.waiting || a.model.localeCompare(b.model))
}
