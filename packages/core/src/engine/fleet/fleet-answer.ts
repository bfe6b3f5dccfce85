/** Streams an answer from the first replica that begins it. */
import { LlmError } from '../../errors.ts'
import type { EngineCall } from '../engine.ts'
import type { GenerateEvent } from '../events.ts'
import type { GenerateRequest } from '../request.ts'
import type { FleetRouter, RoutedCall } from './fleet-router.ts'
import type { CallLease, Replica } from './replica.ts'
import { toReplicaFailure } from './replica-failure.ts'
import type { RetryBudget } from './retry-budget.ts'

type NextEvent = IteratorResult<GenerateEvent, undefined>
const done: NextEvent = { value: undefined, done: true }

export interface AnswerSettings {
  readonly router: FleetRouter
  readonly budget: RetryBudget
  readonly maxRetries: number
  readonly hedgeAfterMs: number | undefined
}

/** Not a generator, whose `return` would wait for the event that the replica has not generated yet. */
export class FleetAnswer implements AsyncIterator<GenerateEvent, undefined> {
  readonly #request: GenerateRequest
  readonly #call: EngineCall
  readonly #settings: AnswerSettings
  /** Ends all attempts when the reader leaves. */
  readonly #leaving = new AbortController()
  /** The attempt whose events the reader gets. */
  #chosen: Promise<AnswerAttempt | undefined> | undefined
  #attempt: AnswerAttempt | undefined

  constructor(request: GenerateRequest, call: EngineCall, settings: AnswerSettings) {
    this.#request = request
    this.#call = call
    this.#settings = settings
  }

  next(): Promise<NextEvent> {
    return this.#attempt ? this.#attempt.next() : this.#first()
  }

  async return(): Promise<NextEvent> {
    this.#leaving.abort()
    this.#attempt?.stop()
    return done
  }

  async #first(): Promise<NextEvent> {
    this.#chosen ??= this.#choose()
    this.#attempt = await this.#chosen
    return this.#attempt?.next() ?? done
  }

  /** Resolves with the first attempt that has a token, and ends the others. Undefined if the signal aborts. */
  async #choose(): Promise<AnswerAttempt | undefined> {
    const { router, budget, maxRetries, hedgeAfterMs } = this.#settings
    const call = { ...this.#call, signal: AbortSignal.any([this.#call.signal, this.#leaving.signal]) }
    const routed = router.routeGeneration(this.#request, call)
    const attempts = new Attempts(this.#request, call, router, routed)
    let timer: NodeJS.Timeout | undefined
    let hedge = new Promise<undefined>((resolve) => {
      if (hedgeAfterMs !== undefined) timer = setTimeout(() => resolve(undefined), hedgeAfterMs)
    })
    let retries = 0
    const canRetry = (): boolean => retries < maxRetries && budget.take()
    budget.onCall()
    try {
      await attempts.begin()
      while (true) {
        const outcome = await attempts.race(hedge)
        if (call.signal.aborted) return undefined
        if (outcome === undefined) {
          hedge = new Promise(() => {})
          if (canRetry() && (await attempts.begin())) retries++
        } else if (!outcome.error) return attempts.choose(outcome.attempt)
        // Each replica would reject the caller's mistake.
        else if (!toReplicaFailure(outcome.error.cause)) throw outcome.error.cause
        else if (attempts.isEmpty) {
          if (!canRetry() || !(await attempts.begin())) throw attempts.error
          retries++
        }
      }
    } catch (cause) {
      attempts.choose(undefined)
      if (call.signal.aborted) return undefined
      throw cause
    } finally {
      clearTimeout(timer)
    }
  }
}

interface AttemptOutcome {
  readonly attempt: AnswerAttempt
  readonly error?: { readonly cause: unknown }
}

/** The attempts of one call that wait for their first token. */
class Attempts {
  readonly #request: GenerateRequest
  readonly #call: EngineCall
  readonly #router: FleetRouter
  readonly #routed: RoutedCall
  readonly #tried = new Set<Replica>()
  readonly #waiting = new Map<AnswerAttempt, Promise<AttemptOutcome>>()
  readonly #failed: CallLease[] = []
  /** The error that the caller gets if no attempt succeeds. */
  error: unknown

  constructor(request: GenerateRequest, call: EngineCall, router: FleetRouter, routed: RoutedCall) {
    this.#request = request
    this.#call = call
    this.#router = router
    this.#routed = routed
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0
  }

  /** Begins an attempt at a further replica. False if there is none. */
  async begin(): Promise<boolean> {
    const begun = await this.#router.begin(this.#routed, this.#tried, this.#call.signal)
    if (!begun) return false
    this.#tried.add(begun.replica)
    const attempt = new AnswerAttempt(begun.replica, begun.lease, this.#request, this.#call)
    const outcome = attempt.begin().then(
      () => ({ attempt }),
      (cause: unknown) => {
        this.#failed.push(begun.lease)
        return this.#onError(attempt, cause)
      },
    )
    this.#waiting.set(attempt, outcome)
    return true
  }

  /** Resolves with the next outcome, or with undefined when it is time for a second attempt. */
  race(hedge: Promise<undefined>): Promise<AttemptOutcome | undefined> {
    return Promise.race([...this.#waiting.values(), hedge])
  }

  /** Ends all attempts but one, which has its first token. */
  choose(chosen: AnswerAttempt | undefined): AnswerAttempt | undefined {
    if (chosen) for (const lease of this.#failed) lease.confirmFailure()
    for (const attempt of this.#waiting.keys()) if (attempt !== chosen) attempt.stop()
    return chosen
  }

  #onError(attempt: AnswerAttempt, cause: unknown): AttemptOutcome {
    this.#waiting.delete(attempt)
    // A caller can wait for a server that is overloaded, but not for one that is away.
    if (!(LlmError.is(this.error) && this.error.code === 'overloaded')) this.error = cause
    return { attempt, error: { cause } }
  }
}

/** A call at one replica. */
class AnswerAttempt {
  readonly #lease: CallLease
  readonly #signal: AbortSignal
  readonly #stopping = new AbortController()
  readonly #events: AsyncIterator<GenerateEvent, undefined>
  /** Events that came before the first token. */
  #held: NextEvent[] = []

  constructor(replica: Replica, lease: CallLease, request: GenerateRequest, call: EngineCall) {
    this.#lease = lease
    this.#signal = AbortSignal.any([call.signal, this.#stopping.signal])
    const events = replica.engine.generate(request, { ...call, signal: this.#signal })
    this.#events = events[Symbol.asyncIterator]()
    // A reader that leaves may ask for no further event.
    this.#signal.addEventListener('abort', () => this.#release(), { once: true })
  }

  /** Resolves when the first token, the end or the abort has come. Rejects if the replica fails before. */
  async begin(): Promise<void> {
    while (true) {
      const result = await this.#take()
      this.#held.push(result)
      if (result.done || result.value.type !== 'start') return
    }
  }

  next(): Promise<NextEvent> {
    const held = this.#held.shift()
    return held ? Promise.resolve(held) : this.#take()
  }

  stop(): void {
    this.#stopping.abort()
  }

  /** Frees the connection. The replica's engine may still generate an event, and then ends. */
  #release(): void {
    this.#lease.end()
    void this.#events.return?.().catch(() => {})
  }

  #take(): Promise<NextEvent> {
    return this.#events.next().then(this.#onResult, this.#onError)
  }

  readonly #onResult = (result: NextEvent): NextEvent => {
    if (result.done) this.#lease.end()
    else {
      this.#lease.onEvent(result.value)
      // Readers ask for nothing after the end, so the connection would stay in use.
      if (result.value.type === 'end') this.#release()
    }
    return result
  }

  readonly #onError = (cause: unknown): never => {
    this.#lease.end(this.#signal.aborted ? undefined : cause)
    throw cause
  }
}
