/** What is remembered of models that fail, so that one bad file does not cost everybody else their model. */
import { LlmError } from '../../../errors.ts'

/** A file that crashes the loader twice in a row mostly does so always. */
const maxLoadCrashes = 2
/** So long it is then left alone. It may have been the machine after all. */
const loadBanMs = 10 * 60_000
/** So many ends in a row without a word are met by a new process at once; then it is 1 s, 2 s, 4 s, up to 30 s. */
const immediateRestarts = 3
const maxPauseMs = 30_000

interface Failure {
  /** Ends of the process in a row, before it said anything. */
  ends: number
  /** Crashes in a row while the model was loaded. */
  loadCrashes: number
  /** Of the last one, in milliseconds of a clock that only goes forward. */
  at: number
}

/** By fingerprint: a file that has changed starts anew. */
export class Failures {
  readonly #now: () => number
  readonly #failures = new Map<string, Failure>()

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Throws at once, rather than keep others waiting: `upstream` for a bad file, `overloaded` while a restart pauses. */
  check(fingerprint: string, name: string): void {
    const failure = this.#failures.get(fingerprint)
    if (!failure) return
    const age = this.#now() - failure.at
    if (failure.loadCrashes >= maxLoadCrashes && age < loadBanMs) {
      throw new LlmError(
        'upstream',
        `The file of the model "${name}" has crashed the engine ${maxLoadCrashes} times while it was loaded. It is tried again when the file changes, or in ${toMinutes(loadBanMs - age)} minutes.`,
      )
    }
    const restarts = failure.ends - immediateRestarts
    const pauseMs = restarts < 0 ? 0 : Math.min(maxPauseMs, 1_000 * 2 ** restarts)
    if (age < pauseMs) {
      const retryAfterMs = pauseMs - age
      throw new LlmError('overloaded', `The model "${name}" keeps failing. It is tried again soon.`, {
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

  onText(fingerprint: string): void {
    this.#failures.delete(fingerprint)
  }

  #record(fingerprint: string): Failure {
    const failure = this.#failures.get(fingerprint) ?? { ends: 0, loadCrashes: 0, at: 0 }
    failure.at = this.#now()
    this.#failures.set(fingerprint, failure)
    return failure
  }
}

const toMinutes = (ms: number): number => Math.ceil(ms / 60_000)
