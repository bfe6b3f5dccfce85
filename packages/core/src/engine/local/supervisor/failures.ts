/**
 * Counts failures per fingerprint, so that a bad model file does not occupy the engine. A changed file has
 * another fingerprint.
 */
import { LlmError } from '../../../errors.ts'
import type { GenerateEvent } from '../../events.ts'

/**
 * Number of load crashes in a row after which a file is rejected. Such a file usually crashes the loader each
 * time.
 */
const maxLoadCrashes = 2
/**
 * How long a file that crashes the loader is rejected. The rejection ends, since the machine may have caused
 * the crashes.
 */
const loadBanMs = 10 * 60_000
/**
 * If a process ends this many times in a row without output, restarts are rejected for 1 s. Each further end
 * doubles the time, up to 30 s.
 */
const immediateRestarts = 3
const maxPauseMs = 30_000
/** Maximum number of fingerprints. The fingerprint with the oldest failure is dropped first. */
const maxEntries = 1_000

interface Failure {
  /** How often the process has ended in a row without output. */
  ends: number
  /** How often the process has crashed in a row during load. */
  loadCrashes: number
  /** Time of the last failure on a monotonic clock, in milliseconds. */
  at: number
}

export class Failures {
  readonly #now: () => number
  /** By fingerprint, in order of the last failure. */
  readonly #failures = new Map<string, Failure>()

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /**
   * Throws an `LlmError`: `upstream` for a file that crashed the loader, `overloaded` while restarts are
   * rejected.
   */
  check(fingerprint: string, name: string): void {
    const failure = this.#failures.get(fingerprint)
    if (!failure) return
    const age = this.#now() - failure.at
    if (failure.loadCrashes >= maxLoadCrashes && age < loadBanMs) {
      throw new LlmError(
        'upstream',
        `The file of the model "${name}" crashed the engine ${maxLoadCrashes} times while loading. The next attempt is in ${toMinutes(loadBanMs - age)} minutes, or when the file changes.`,
        { retryAfterMs: loadBanMs - age },
      )
    }
    const restarts = failure.ends - immediateRestarts
    const pauseMs = restarts < 0 ? 0 : Math.min(maxPauseMs, 1_000 * 2 ** restarts)
    if (age < pauseMs) {
      const retryAfterMs = pauseMs - age
      throw new LlmError('overloaded', `The model "${name}" keeps failing. Try again later.`, {
        retryAfterMs,
      })
    }
  }

  onEnd(fingerprint: string): void {
    this.#record(fingerprint).ends++
  }

  onLoadCrash(fingerprint: string): void {
    this.#record(fingerprint).loadCrashes++
  }

  onLoaded(fingerprint: string): void {
    const failure = this.#failures.get(fingerprint)
    if (failure) failure.loadCrashes = 0
  }

  /** Resets the failures if the event is output. */
  onEvent(fingerprint: string, type: GenerateEvent['type']): void {
    if (isOutput(type)) this.onOutput(fingerprint)
  }

  onOutput(fingerprint: string): void {
    this.#failures.delete(fingerprint)
  }

  #record(fingerprint: string): Failure {
    const failure = this.#failures.get(fingerprint) ?? { ends: 0, loadCrashes: 0, at: 0 }
    failure.at = this.#now()
    this.#failures.delete(fingerprint)
    this.#failures.set(fingerprint, failure)
    const [oldest] = this.#failures.keys()
    if (this.#failures.size > maxEntries && oldest !== undefined) this.#failures.delete(oldest)
    return failure
  }
}

/** The events `start`, `prompt` and `progress` are no output, since they need only the prompt. */
export const isOutput = (type: GenerateEvent['type']): boolean =>
  type !== 'start' && type !== 'prompt' && type !== 'progress'

const toMinutes = (ms: number): number => Math.ceil(ms / 60_000)
