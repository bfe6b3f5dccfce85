/** The replicas of a fleet, as they join and leave. */
import { LlmError } from '../../errors.ts'
import { withTimeout } from '../../util/with-timeout.ts'
import type { ReplicaEvent } from '../replicas.ts'
import type { ResolvedUpstreamOptions } from '../upstream/options.ts'
import { HealthProbes } from './health-probes.ts'
import type { ResolvedFleetOptions } from './options.ts'
import { Replica } from './replica.ts'

/** Time limit for one read of the list, in ms. */
const readTimeoutMs = 10_000

export class FleetMembers {
  readonly #options: ResolvedFleetOptions
  readonly #onEvent: (event: ReplicaEvent) => void
  readonly #probes: HealthProbes | undefined
  /** By URL, in the order of the list. Those that leave stay until their running calls have ended. */
  readonly #replicas = new Map<string, Replica>()
  /** URLs that the app drains, whether or not they are in the list. */
  readonly #drained = new Set<string>()
  #listed: ReadonlySet<string> = new Set()
  #cacheIds = 0
  /** Settles when the list was read for the first time. */
  #started: Promise<void> | undefined
  #hasList = false
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: ResolvedFleetOptions, onEvent: (event: ReplicaEvent) => void) {
    this.#options = options
    this.#onEvent = onEvent
    this.#probes = options.probe && new HealthProbes(options.probe)
  }

  /** All replicas, also those that are draining. */
  get all(): readonly Replica[] {
    return [...this.#replicas.values()]
  }

  /** Those that get calls. */
  get active(): readonly Replica[] {
    return this.all.filter(({ isDraining }) => !isDraining)
  }

  /** Reads the list if that was not done before. Rejects with an `LlmError` if it cannot be read. */
  async start(): Promise<void> {
    this.#started ??= this.#refresh()
    await this.#started
    if (this.#hasList) return
    // The next call tries again.
    this.#started = undefined
    throw new LlmError('upstream', 'The replicas of this fleet cannot be found.', {
      upstreamFailure: 'unreachable',
    })
  }

  /** Sends no more calls to a replica. Resolves when its running calls have ended. */
  async drain(url: string): Promise<void> {
    this.#drained.add(url)
    this.#apply()
    await this.#replicas.get(url)?.whenIdle()
  }

  resume(url: string): void {
    this.#drained.delete(url)
    this.#apply()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#probes?.close()
    await Promise.all(this.all.map(({ engine }) => engine.close()))
  }

  /** Never rejects: while the list cannot be read, the last one stays. */
  async #refresh(): Promise<void> {
    const { membership } = this.#options
    clearTimeout(this.#timer)
    try {
      const list = await withTimeout(membership.read(), readTimeoutMs)
      if (list) {
        this.#update(list)
        this.#hasList = true
      }
    } catch {
      // `start` reports it if there was no list before.
    }
    if (this.#isClosed || membership.refreshMs === undefined) return
    this.#timer = setTimeout(() => void this.#refresh(), membership.refreshMs)
    this.#timer.unref()
  }

  #update(list: readonly ResolvedUpstreamOptions[]): void {
    if (this.#isClosed) return
    this.#listed = new Set(list.map(({ baseUrl }) => baseUrl.href))
    for (const options of list) {
      if (!this.#replicas.has(options.baseUrl.href)) this.#join(options)
    }
    this.#apply()
  }

  #join(options: ResolvedUpstreamOptions): void {
    const { maxFailures, slowStartMs, probe, maxRetries } = this.#options
    const settings = {
      ...{ maxFailures, slowStartMs, hasProbes: probe !== undefined, hasRetries: maxRetries > 0 },
      nextCacheId: () => this.#cacheIds++,
      onEvent: (event: ReplicaEvent) => {
        if (event.type === 'eject') this.#probes?.onEject(replica)
        this.#onEvent(event)
      },
    }
    const replica: Replica = new Replica(options, settings, this.#hasList)
    this.#replicas.set(replica.url, replica)
    this.#probes?.add(replica)
    this.#onEvent({ type: 'join', url: replica.url })
  }

  /** Drains the replicas that are not in the list, and those that the app drains. */
  #apply(): void {
    for (const replica of this.#replicas.values()) {
      const isListed = this.#listed.has(replica.url)
      replica.isDraining = !isListed || this.#drained.has(replica.url)
      if (!isListed) void this.#remove(replica)
    }
  }

  async #remove(replica: Replica): Promise<void> {
    await replica.whenIdle()
    // It may have joined again, or another read may have removed it.
    if (this.#listed.has(replica.url) || this.#replicas.get(replica.url) !== replica) return
    this.#replicas.delete(replica.url)
    this.#probes?.remove(replica)
    this.#onEvent({ type: 'leave', url: replica.url })
    await replica.engine.close()
  }
}
