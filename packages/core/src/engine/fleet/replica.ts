/** One server of a fleet: its engine, its load and its health. */
import type { GenerateEvent } from '../events.ts'
import type { ReplicaEvent, ReplicaFailure, ReplicaState, ReplicaStatus } from '../replicas.ts'
import { createUpstream } from '../upstream/create-upstream.ts'
import type { ResolvedUpstreamOptions } from '../upstream/options.ts'
import type { UpstreamEngine } from '../upstream/upstream-engine.ts'
import type { Candidate } from './choose-replica.ts'
import { toReplicaFailure } from './replica-failure.ts'
import { type HealthSettings, ReplicaHealth } from './replica-health.ts'

export interface ReplicaSettings extends HealthSettings {
  /** Returns an id that no cache has had. */
  readonly nextCacheId: () => number
  /** Whether calls that fail are sent to other replicas, which shows whether the call or the replica is at fault. */
  readonly hasRetries: boolean
  readonly onEvent: (event: ReplicaEvent) => void
}

export class Replica implements Candidate {
  readonly url: string
  readonly engine: UpstreamEngine
  readonly health: ReplicaHealth
  readonly #settings: ReplicaSettings
  readonly #leases = new Set<CallLease>()
  /** Called when the last running call ends. */
  readonly #onIdle = new Set<() => void>()
  #cacheId: number
  #calls = 0
  #failedCalls = 0
  #inputTokens = 0
  #cachedTokens = 0
  #lastFailure: ReplicaStatus['lastFailure']
  #wasEjected = false
  outstandingTokens = 0
  /** Whether it ends its running calls and gets no others. */
  isDraining = false

  constructor(options: ResolvedUpstreamOptions, settings: ReplicaSettings, hasSlowStart: boolean) {
    this.url = options.baseUrl.href
    this.engine = createUpstream(options)
    this.health = new ReplicaHealth(settings, hasSlowStart)
    this.#settings = settings
    this.#cacheId = settings.nextCacheId()
  }

  get cacheId(): number {
    return this.#cacheId
  }

  get weight(): number {
    return this.health.weight
  }

  get state(): ReplicaState {
    return this.isDraining ? 'draining' : this.health.state
  }

  get status(): ReplicaStatus {
    return {
      ...{ url: this.url, state: this.state, outstandingTokens: this.outstandingTokens },
      ...{ runningCalls: this.#leases.size, calls: this.#calls, failedCalls: this.#failedCalls },
      ...{ inputTokens: this.#inputTokens, cachedTokens: this.#cachedTokens },
      ...{ ejections: this.health.ejections, lastFailure: this.#lastFailure },
    }
  }

  /** @param tokens those of the prompt that are not in the cache, and a bound of those of the answer */
  begin(tokens: { readonly prompt: number; readonly output: number }): CallLease {
    this.#calls++
    const lease = new CallLease(tokens, {
      onTokens: (change) => {
        this.outstandingTokens += change
      },
      onFirstToken: () => this.#onSuccess(),
      onUsage: ({ inputTokens, reusedTokens }) => {
        this.#inputTokens += inputTokens
        this.#cachedTokens += reusedTokens
      },
      onEnd: (error) => {
        this.#leases.delete(lease)
        if (error !== undefined) this.#onError(error, lease)
        if (this.#leases.size > 0) return
        for (const callback of this.#onIdle) callback()
        this.#onIdle.clear()
      },
    })
    this.#leases.add(lease)
    return lease
  }

  onProbe(error: unknown): void {
    const failure = error === undefined ? undefined : toReplicaFailure(error)
    // An error of a caller says that the server answers.
    const hasFailed = failure !== undefined && failure !== 'missing' && failure !== 'refused'
    if (hasFailed) this.#lastFailure = { kind: failure, at: new Date() }
    this.health.onProbe(!hasFailed)
    this.#report(failure)
  }

  /** A call without a stream has succeeded. */
  onAnswer(): void {
    this.#onSuccess()
  }

  /** Resolves when no call runs. */
  async whenIdle(): Promise<void> {
    if (this.#leases.size > 0) await new Promise<void>((resolve) => this.#onIdle.add(resolve))
  }

  #onSuccess(): void {
    this.health.onSuccess()
    this.#report(undefined)
  }

  #onError(error: unknown, lease: CallLease): void {
    const failure = toReplicaFailure(error)
    if (!failure) return
    this.#failedCalls++
    this.#lastFailure = { kind: failure, at: new Date() }
    const countFailure = () => this.#countFailure(failure, error)
    // Some servers fail for a mistake of the caller, who must not be able to eject all replicas.
    if (failure === 'failed' && this.#settings.hasRetries && !lease.hasBegun) lease.onConfirm = countFailure
    else countFailure()
  }

  #countFailure(failure: ReplicaFailure, error: unknown): void {
    const { retryAfterMs } =
      (error as { readonly details?: { readonly retryAfterMs?: number } }).details ?? {}
    this.health.onFailure(failure, retryAfterMs)
    this.#report(failure)
  }

  /** Reports an ejection or its end. */
  #report(failure: ReplicaFailure | undefined): void {
    const isEjected = this.health.state === 'ejected'
    if (isEjected === this.#wasEjected) return
    this.#wasEjected = isEjected
    // A server that was away has started again, probably.
    if (isEjected) this.#cacheId = this.#settings.nextCacheId()
    this.#settings.onEvent(
      isEjected ? { type: 'eject', url: this.url, failure } : { type: 'return', url: this.url },
    )
  }
}

interface LeaseListeners {
  readonly onTokens: (change: number) => void
  readonly onFirstToken: () => void
  readonly onUsage: (usage: { readonly inputTokens: number; readonly reusedTokens: number }) => void
  /** @param error undefined for a call that has ended or was aborted */
  readonly onEnd: (error: unknown) => void
}

/** A call that runs at a replica, and the tokens that it has still to evaluate and to generate. */
export class CallLease {
  readonly #listeners: LeaseListeners
  #promptTokens: number
  readonly #outputTokens: number
  #hasEnded = false
  /** Whether the first token has come. */
  hasBegun = false
  /** Set for a failure that counts only when another replica answers the same call. */
  onConfirm: (() => void) | undefined

  constructor(tokens: { readonly prompt: number; readonly output: number }, listeners: LeaseListeners) {
    this.#listeners = listeners
    this.#promptTokens = tokens.prompt
    this.#outputTokens = tokens.output
    listeners.onTokens(this.#promptTokens + this.#outputTokens)
  }

  onEvent(event: GenerateEvent): void {
    if (this.#hasEnded || event.type === 'start') return
    if (!this.hasBegun) {
      this.hasBegun = true
      this.#listeners.onTokens(-this.#promptTokens)
      this.#promptTokens = 0
      this.#listeners.onFirstToken()
    }
    if (event.type !== 'end') return
    this.#listeners.onUsage(event.usage)
    this.end()
  }

  /** Another replica has answered the call. */
  confirmFailure(): void {
    this.onConfirm?.()
    this.onConfirm = undefined
  }

  /** @param error of a call that has failed. Further calls of this method have no effect */
  end(error?: unknown): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#listeners.onTokens(-this.#promptTokens - this.#outputTokens)
    this.#listeners.onEnd(error)
  }
}
