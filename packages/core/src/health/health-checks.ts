/** Checks whether an app can answer calls of models now. */
import type { Engine } from '../engine/engine.ts'
import { LlmError, modelNotFound } from '../errors.ts'
import type { RateLimiter } from '../limits/limits.ts'
import type { Model } from '../models/model.ts'
import type { Database } from '../storage/database.ts'
import { withTimeout } from '../util/with-timeout.ts'
import { noResult, SharedCheck, type SharedCheckOptions } from './shared-check.ts'

/** The result of `llm.checkHealth()`. */
export interface Health {
  /** `unavailable` if one of the checks is. */
  readonly status: HealthStatus
  /**
   * By name: `app`, `database`, `limiterStore`, `engine`, `queue` and `models`, and `model NAME` for each model that was
   * asked for. An app without a database or a `limiterStore` has no check of it.
   */
  readonly checks: Readonly<Record<string, HealthCheck>>
}

/** The result of one check. */
export interface HealthCheck {
  /** Whether the part that was checked can be used. */
  readonly status: HealthStatus
  /** What is wrong. Absent if the status is `ok`. */
  readonly reason?: string
}

/** `unavailable` if the app cannot answer calls because of the checked part. */
export type HealthStatus = 'ok' | 'unavailable'

/** Options of `llm.checkHealth()`. */
export interface HealthOptions {
  /**
   * Names of models that must decode a token within a second, if they are loaded. A model that decodes for other calls
   * needs no further proof. A model that is not loaded must be there, and its last process must not just have crashed.
   * No model is loaded or kept loaded for longer. Results are kept for 5 s.
   *
   * @default none
   */
  readonly models?: readonly string[] | undefined
}

export interface HealthParts {
  readonly engine: Engine
  /** Undefined if the app has no database. */
  readonly database: Database | undefined
  /** The limiter whose counts are in a `limiterStore`. Undefined if the app has none. */
  readonly storedLimiter: RateLimiter | undefined
  readonly listModels: () => Promise<readonly Model[]>
  /** Resolves with undefined for an unknown name. */
  readonly findModel: (name: string) => Promise<Model | undefined>
  /** Whether the app needs a model on disk. An engine of the host app may need none. */
  readonly needsModels: boolean
  /** Returns the names of models whose queue is full. */
  readonly fullQueues: () => readonly string[]
  readonly isClosing: () => boolean
}

/** How long a caller waits for a check, and how long its result is kept, in ms. Both together stay below 2 s. */
const limits = { deadlineMs: 1_000, keptMs: 500 }
/** How long a decoded token is a proof, in ms. */
const probeKeptMs = 5_000
/** Models whose last result is kept. Each costs some hundred bytes. */
const maxProbes = 1_000

export class HealthChecks {
  readonly #parts: HealthParts
  readonly #database = new SharedCheck(limits)
  readonly #limiterStore = new SharedCheck(limits)
  readonly #engine = new SharedCheck(limits)
  readonly #models = new SharedCheck(limits)
  /** By the name of the model and its process, because each process must prove that it decodes. */
  readonly #probes = new Map<string, SharedCheck>()
  readonly #modelProblems = new Map<string, SharedCheck>()

  constructor(parts: HealthParts) {
    this.#parts = parts
  }

  async check({ models = [] }: HealthOptions = {}): Promise<Health> {
    const { database, storedLimiter, engine, isClosing, fullQueues } = this.#parts
    const full = fullQueues()
    const checks: readonly (readonly [
      name: string,
      problem: Promise<string | undefined> | string | undefined,
    ])[] = [
      ['app', isClosing() ? 'The app is closing.' : undefined],
      ...(database ? [['database', this.#database.run(() => checkDatabase(database))] as const] : []),
      ...(storedLimiter
        ? [['limiterStore', this.#limiterStore.run(() => checkLimiter(storedLimiter))] as const]
        : []),
      ['engine', this.#engine.run(async () => engine.health?.problem())],
      ['queue', full.length > 0 ? `The queue is full: ${full.join(', ')}.` : undefined],
      ['models', this.#models.run((signal) => this.#findServableModel(signal))],
      ...models.map((name) => [`model ${name}`, this.#checkModelInTime(name)] as const),
    ]
    const results = await Promise.all(
      checks.map(async ([name, pending]): Promise<[string, HealthCheck]> => {
        const reason = await pending
        return [name, reason === undefined ? { status: 'ok' } : { status: 'unavailable', reason }]
      }),
    )
    const isOk = results.every(([, { status }]) => status === 'ok')
    return { status: isOk ? 'ok' : 'unavailable', checks: Object.fromEntries(results) }
  }

  /** Returns a problem if there are models, but each has one. */
  async #findServableModel(signal: AbortSignal): Promise<string | undefined> {
    const { engine, listModels, needsModels } = this.#parts
    const models = (await listModels()).filter((model) => !isWithoutWeights(model))
    if (models.length === 0) return needsModels ? 'There is no model.' : undefined
    const problems = models.map(async (model) => {
      const problem = await engine.health?.problemOf(model, signal)
      if (problem !== undefined) throw new Error(problem)
    })
    try {
      await Promise.any(problems)
      return undefined
    } catch (error) {
      return String(((error as AggregateError).errors[0] as Error).message)
    }
  }

  /** Looking for a model has no deadline, such as on a disk that hangs. */
  async #checkModelInTime(name: string): Promise<string | undefined> {
    const check = this.#checkModel(name).then((problem) => ({ problem }))
    const result = await withTimeout(check, limits.deadlineMs)
    return result ? result.problem : noResult(limits.deadlineMs)
  }

  async #checkModel(name: string): Promise<string | undefined> {
    const { engine, findModel, needsModels } = this.#parts
    const model = await findModel(name).catch((error: unknown) => LlmError.from(error))
    if (model instanceof LlmError) return model.message
    if (!model) return needsModels ? modelNotFound(name).message : undefined
    if (isWithoutWeights(model)) return `The weights of the model "${model.name}" are missing.`
    const { health } = engine
    if (!health) return undefined
    const problem = await sharedCheckOf(this.#modelProblems, model.name, limits).run((signal) =>
      health.problemOf(model, signal),
    )
    if (problem !== undefined) return problem
    const process = engine.loaded().find((loaded) => loaded.name === model.name)?.processId
    const key = `${model.name} ${process}`
    const probeLimits = { deadlineMs: limits.deadlineMs, keptMs: probeKeptMs }
    return sharedCheckOf(this.#probes, key, probeLimits).run(async (signal) => {
      await health.probe(model, signal)
      return undefined
    })
  }
}

const isWithoutWeights = ({ path, isIncomplete, details }: Model): boolean =>
  !details && (path === '' || isIncomplete === true)

function sharedCheckOf(
  checks: Map<string, SharedCheck>,
  key: string,
  options: SharedCheckOptions,
): SharedCheck {
  const shared = checks.get(key) ?? new SharedCheck(options)
  const [oldest] = checks.keys()
  if (!checks.has(key) && checks.size >= maxProbes && oldest !== undefined) checks.delete(oldest)
  checks.set(key, shared)
  return shared
}

/** Resolves if the database can be written: a read would not notice an SQLite file that another program has locked. */
async function checkDatabase(database: Database): Promise<undefined> {
  await database.transaction(({ query }) => query('SELECT 1'))
}

/** Resolves if a reservation can be stored: a read would not notice a Redis without free memory. */
async function checkLimiter(limiter: RateLimiter): Promise<undefined> {
  await limiter.reserve([healthSubject], { requests: 1, tokens: 0 })
}

/** A bucket that refills within a millisecond, so no number of checks exhausts it. */
const healthSubject = { id: 'health:check', limits: { requestsPerMinute: 100_000_000_000 } }
