/** The calls that run now, as events of the diagnostics channels report them. */
import type { CallUsage } from '../accounts/usage/call-usage.ts'
import type { LoadedModel } from '../engine/engine.ts'
import type { ReplicaStatus } from '../engine/replicas.ts'
import { subscribe } from './channels.ts'
import type { DiagnosedCall } from './events.ts'

/**
 * What a call waits for: its turn in the queue, or also its limits and interceptors; its model; the evaluation of its
 * prompt or its texts; or its next output token.
 */
export type CallPhase = 'queued' | 'loading' | 'prompt' | 'decoding'

/** A call that runs now. */
export interface LiveCall extends DiagnosedCall {
  /** What the call waits for or does. */
  readonly phase: CallPhase
  /** When the call began. */
  readonly startedAt: Date
  /** Milliseconds since the start of the call. */
  readonly ageMs: number
  /** Tokens of the prompt. 0 while unknown. */
  readonly inputTokens: number
  /** Tokens of the prompt whose KV state is reused. */
  readonly reusedTokens: number
  /** Output tokens that are generated so far, in all answers of the call. */
  readonly outputTokens: number
  /** Output tokens per second since the first one. 0 before the second one. */
  readonly tokensPerSecond: number
}

/** What the app does now, for `modelmount top`, `modelmount fleet` and dashboards. */
export interface Activity {
  /** The oldest calls that run now, at most 1,000. */
  readonly calls: readonly LiveCall[]
  /** Number of all calls that run now. */
  readonly callCount: number
  /** Calls that wait in the queue of each model. */
  readonly queues: readonly { readonly model: string; readonly waiting: number }[]
  /** Models in memory, and those that are being loaded. */
  readonly models: readonly Omit<LoadedModel, 'settings'>[]
  /** The servers between which engines divide their calls. */
  readonly replicas: readonly ReplicaStatus[]
}

export interface ActivitySources {
  /** The loaded models, which also tell whether a call waits for one. */
  readonly loaded: () => readonly LoadedModel[]
  readonly queues: () => Activity['queues']
  readonly replicas: () => readonly ReplicaStatus[]
}

const maxCalls = 1_000

interface WatchedCall {
  call: DiagnosedCall
  readonly usage: () => CallUsage | undefined
  readonly startedAt: Date
  /** Times on the clock of `performance.now()`. */
  readonly startedMs: number
  firstTokenMs?: number
  isAdmitted?: true
}

/** Knows the calls that began after `listen()`. Until then, it costs nothing. */
export class LiveCalls {
  readonly #llmOf: () => object
  readonly #sources: ActivitySources
  readonly #entries = new Map<string, WatchedCall>()
  #unsubscribe: (() => void) | undefined

  constructor(llmOf: () => object, sources: ActivitySources) {
    this.#llmOf = llmOf
    this.#sources = sources
  }

  /** Begins to collect calls. Does nothing when called again. */
  listen(): void {
    const end = ({ call }: { readonly call: DiagnosedCall }): void => void this.#entries.delete(call.id)
    this.#unsubscribe ??= subscribe(this.#llmOf(), {
      'modelmount:call:start': ({ call, usage }) => {
        // Requests without a model, such as the one that reads this list, are over at once.
        if (call.kind === 'admin' || call.kind === 'storage') return
        const startedMs = performance.now()
        this.#entries.set(call.id, { call, usage, startedAt: new Date(), startedMs })
      },
      'modelmount:call:admitted': ({ call }) => {
        const entry = this.#entries.get(call.id)
        // The model has its canonical name now.
        if (entry) Object.assign(entry, { call, isAdmitted: true })
      },
      'modelmount:call:first-token': ({ call }) => {
        const entry = this.#entries.get(call.id)
        if (entry) entry.firstTokenMs = performance.now()
      },
      'modelmount:call:end': end,
      'modelmount:call:error': end,
    })
  }

  /** Returns the calls, the oldest first. */
  list(): readonly LiveCall[] {
    const loaded = this.#sources.loaded()
    const ready = new Set(loaded.flatMap(({ name, state }) => (state === 'ready' ? [name] : [])))
    const now = performance.now()
    return [...this.#entries.values()].map((entry) => toLiveCall(entry, ready, now))
  }

  activity(): Activity {
    const calls = this.list()
    return {
      calls: calls.slice(0, maxCalls),
      callCount: calls.length,
      queues: this.#sources.queues().filter(({ waiting }) => waiting > 0),
      models: this.#sources.loaded().map(({ settings: _, ...model }) => model),
      replicas: this.#sources.replicas(),
    }
  }

  close(): void {
    this.#unsubscribe?.()
    this.#entries.clear()
  }
}

function toLiveCall(entry: WatchedCall, readyModels: ReadonlySet<string>, now: number): LiveCall {
  const { call, startedAt, startedMs, firstTokenMs = now } = entry
  const usage = entry.usage()
  const outputTokens = (usage?.outputTokens ?? 0) + (usage?.undeliveredTokens ?? 0)
  return {
    ...call,
    phase: phaseOf(entry, usage !== undefined || readyModels.has(call.model)),
    startedAt,
    ageMs: now - startedMs,
    inputTokens: usage?.inputTokens ?? 0,
    reusedTokens: usage?.reusedTokens ?? 0,
    outputTokens,
    tokensPerSecond:
      now > firstTokenMs && outputTokens > 1 ? (1_000 * (outputTokens - 1)) / (now - firstTokenMs) : 0,
  }
}

function phaseOf({ isAdmitted, firstTokenMs }: WatchedCall, isLoaded: boolean): CallPhase {
  if (firstTokenMs !== undefined) return 'decoding'
  if (!isAdmitted) return 'queued'
  return isLoaded ? 'prompt' : 'loading'
}
