/** Decides from what happens to calls and probes whether a replica gets calls. */
import type { ReplicaFailure, ReplicaState } from '../replicas.ts'

export interface HealthSettings {
  /** Failures in a row after which a replica is ejected. A replica that cannot be reached is ejected at once. */
  readonly maxFailures: number
  /** How long a replica gets fewer calls after it has joined or returned, in ms. */
  readonly slowStartMs: number
  /** Whether only a successful probe ends an ejection. Otherwise, its time ends it. */
  readonly hasProbes: boolean
  /** @default performance.now */
  readonly now?: () => number
  /** From 0 to 1. @default Math.random */
  readonly random?: () => number
}

/** Length of the first ejection, in ms. Each further one is twice as long. */
const minEjectionMs = 1_000
const maxEjectionMs = 60_000
/** Part of an ejection that is random, so that app processes do not return at once. */
const jitter = 0.4
/** Calls that a replica has refused without `retry-after` go elsewhere for this long, in ms. */
const defaultPauseMs = 1_000
const maxPauseMs = 30_000
const maxFailedProbes = 2
/** Share of the load at the beginning of a slow start. */
const minWeight = 0.1

export class ReplicaHealth {
  readonly #settings: HealthSettings
  readonly #now: () => number
  readonly #random: () => number
  #failures = 0
  #failedProbes = 0
  #ejections = 0
  /** Number of ejections shortly after each other. */
  #level = 0
  #ejectedUntil: number | undefined
  #pausedUntil = Number.NEGATIVE_INFINITY
  #startedAt: number

  /** @param hasSlowStart false for the replicas of the first list: all of them are new */
  constructor(settings: HealthSettings, hasSlowStart: boolean) {
    this.#settings = settings
    this.#now = settings.now ?? (() => performance.now())
    this.#random = settings.random ?? Math.random
    this.#startedAt = hasSlowStart ? this.#now() : Number.NEGATIVE_INFINITY
  }

  get state(): Exclude<ReplicaState, 'draining'> {
    const now = this.#now()
    if (this.#isEjected(now)) return 'ejected'
    if (now < this.#pausedUntil) return 'overloaded'
    return this.weight < 1 ? 'starting' : 'ready'
  }

  get ejections(): number {
    return this.#ejections
  }

  /** Share of its load that the replica may have now, from 0.1 to 1. */
  get weight(): number {
    const { slowStartMs } = this.#settings
    const share = slowStartMs === 0 ? 1 : (this.#now() - this.#startedAt) / slowStartMs
    return Math.min(1, Math.max(minWeight, share))
  }

  /** Time at which an ejection can end, by the clock of `now`. Undefined while the replica is not ejected. */
  get ejectedUntil(): number | undefined {
    return this.#isEjected(this.#now()) ? this.#ejectedUntil : undefined
  }

  /** A call has got its first token. */
  onSuccess(): void {
    this.#failures = 0
    if (this.#isEjected(this.#now())) this.#return()
  }

  /** @param retryAfterMs time after which an overloaded replica takes calls again, as it says */
  onFailure(failure: ReplicaFailure, retryAfterMs = defaultPauseMs): void {
    if (failure === 'missing') return
    if (failure === 'overloaded') {
      this.#pausedUntil = this.#now() + Math.min(maxPauseMs, retryAfterMs)
      return
    }
    this.#failures++
    const isFatal = failure === 'unreachable' || this.weight < 1
    // Calls that were sent before the ejection fail after it.
    if (this.#isEjected(this.#now())) return
    if (isFatal || this.#failures >= this.#settings.maxFailures) this.#eject()
  }

  onProbe(hasSucceeded: boolean): void {
    const now = this.#now()
    this.#failedProbes = hasSucceeded ? 0 : this.#failedProbes + 1
    if (this.#ejectedUntil !== undefined && now >= this.#ejectedUntil) {
      if (hasSucceeded) this.#return()
      else this.#eject()
    } else if (this.#ejectedUntil === undefined && this.#failedProbes >= maxFailedProbes) this.#eject()
  }

  #isEjected(now: number): boolean {
    if (this.#ejectedUntil === undefined) return false
    if (!this.#settings.hasProbes && now >= this.#ejectedUntil) this.#return()
    return this.#ejectedUntil !== undefined
  }

  #eject(): void {
    const now = this.#now()
    if (this.#ejectedUntil === undefined) {
      this.#ejections++
      if (now - this.#startedAt > maxEjectionMs) this.#level = 0
    }
    const ms = Math.min(maxEjectionMs, minEjectionMs * 2 ** this.#level)
    this.#level = Math.min(this.#level + 1, 16)
    this.#ejectedUntil = now + ms * (1 - jitter / 2 + jitter * this.#random())
  }

  #return(): void {
    this.#ejectedUntil = undefined
    this.#failures = 0
    this.#failedProbes = 0
    this.#startedAt = this.#now()
  }
}
