/** The facade that host apps use. `create-llm.ts` implements it. */
import type { AuditLog } from './accounts/audit/audit-log.ts'
import type { Access } from './accounts/auth/access.ts'
import type { Caller, Tiers } from './accounts/auth/caller.ts'
import type { Keys } from './accounts/keys/keys.ts'
import type { PriceList } from './accounts/prices/price-list.ts'
import type { Sessions } from './accounts/sessions/sessions.ts'
import type { Tenants } from './accounts/tenants/tenants.ts'
import type { TrafficQuery, TrafficRow } from './accounts/traffic/traffic-report.ts'
import type { UsageReports } from './accounts/usage/open-metering.ts'
import type { Batch, CreateBatchOptions } from './batches/batch.ts'
import type { BatchActions } from './batches/batch-actions.ts'
import type { AppCalls, CallerLlm } from './calls/app-calls.ts'
import type { ForwardedCall } from './calls/call.ts'
import type { RouteClient } from './calls/client.ts'
import type { ModelActions } from './calls/models/model-actions.ts'
import type { Shutdown } from './calls/shutdown.ts'
import type { QueuedCalls } from './calls/steps/queue.ts'
import type { LiveCalls } from './diagnostics/live-calls.ts'
import type { Engine } from './engine/engine.ts'
import type { ReplicaStatus } from './engine/replicas.ts'
import type { LlmError } from './errors.ts'
import type { Health, HealthOptions } from './health/health-checks.ts'
import type { BodyBudget } from './http/body-budget.ts'
import type { StallLimits } from './http/message.ts'
import type { CallerLimits, Subject, WithHeaders } from './limits/limits.ts'
import type { CloseOptions } from './options/close.ts'
import type { LiveOptions } from './options/live.ts'
import type { CallDirectory } from './running-calls/call-directory.ts'

/**
 * What `createLlm()` returns: models, answers, keys, usage and limits of an app. Its methods are safe to call at the
 * same time.
 */
export interface Llm extends AppCalls {
  /** Unloads a model after its running answers have ended. Throws `not_found` for an unknown model. */
  unload(model: string): Promise<void>
  /** Lists the models in memory, and those that are being loaded. */
  readonly loaded: Engine['loaded']
  /** Lists, pulls, creates, copies, pushes and deletes models. */
  readonly models: ModelActions
  /**
   * Batches of requests, which run in the background at half the price. Without a database, the methods reject with an
   * `LlmError` `invalid_request`.
   */
  readonly batches: LlmBatches
  /** API keys. Without a database, the methods reject with a `TypeError`. */
  readonly keys: Keys
  /** Usage and cost reports. Without a database, the methods reject with a `TypeError`. */
  readonly usage: UsageReports
  /** Deletes the data of one tenant. Without a database, the deletion reaches this app only. */
  readonly tenants: Pick<Tenants, 'delete'>
  /**
   * Who has changed what through the admin API and the command line. Changes of the app itself are not recorded, because
   * only the app knows who makes them: use `record`. Without a database, nothing is recorded.
   */
  readonly audit: Pick<AuditLog, 'record' | 'list'>
  /** The rate limiter of callers and models. The host app can use it for its own routes, too. */
  readonly limits: CallerLimits
  /**
   * Returns the API key of a request as a rate limit subject, for routes of the host app:
   * `rateLimit(llm.limits, { keyGenerator: llm.apiKeyGenerator })`. A key's calls of such routes and its
   * calls of models count against the same limits. For a key without limits, the limits of the route apply.
   * Throws an `LlmError` `authentication` without a valid key.
   */
  apiKeyGenerator(request: WithHeaders): Promise<Subject>
  /**
   * Replaces `prices`, `tiers` and `aliases` while the app serves, those that are given. The change applies to this
   * process, to calls that begin from now on. Running calls keep the model, prices and limits with which they were
   * admitted. Throws a `TypeError` for an invalid option, and then changes nothing.
   */
  configure(changes: LiveOptions): void
  /**
   * Creates a client that is restricted to one caller's models and limits. Throws `LlmError` for an invalid
   * caller.
   */
  as(caller: Caller): CallerLlm
  /**
   * Checks whether the app can answer calls now: that it is not closing, its database can be written, its queues have
   * room, its engine can run, and it has at least one model that works. Takes a second at most, runs once at a time, and
   * keeps its results for half a second. The routes of `healthRouter()` answer from it.
   */
  checkHealth(options?: HealthOptions): Promise<Health>
  /** Whether `close` was called. A readiness check of the app answers 503 from then on. */
  readonly isClosing: boolean
  /**
   * Ends running answers, charges their usage, and closes the engine and the database. A pool of the app
   * stays open.
   *
   * With `drain`, admits no further calls and lets those that were admitted end first: `llm.close({ drain: '10s' })`.
   * Resolves when their responses are sent. A second call can only shorten the time. Throws a `TypeError` for an
   * invalid option.
   */
  close(options?: CloseOptions): Promise<void>
  readonly [internals]: LlmInternals
}

/**
 * Symbol of the property with the internal methods, for dialects and adapters. It is a global symbol, because
 * an adapter may use another copy of this package.
 */
export const internals: unique symbol = Symbol.for('modelmount.internals') as never

/** Batches of the app. It sees those of all tenants. */
export interface LlmBatches extends BatchActions {
  /** @param options `caller` pays for the batch, and sees it. @default the app itself */
  create(
    requests: Iterable<unknown> | AsyncIterable<unknown>,
    options?: CreateBatchOptions & { readonly caller?: Caller | undefined },
  ): Promise<Batch>
}

export interface LlmInternals {
  /** Authentication and origin checks of the routes. */
  readonly access: Access
  /** Memory for the bodies of requests. */
  readonly bodies: BodyBudget
  /** Admits requests, and waits for their responses when the app closes. */
  readonly shutdown: Pick<Shutdown, 'admit' | 'isClosing'>
  /** Time limits for the clients of answered requests. */
  readonly stallLimits: StallLimits
  /** Returns the calls that wait for each model in the queues of the app. */
  queues(): readonly QueuedCalls[]
  /** Returns the servers between which the engines divide their calls. */
  replicas(): readonly ReplicaStatus[]
  /** Whether the batches of the app are open: their database exists. */
  hasBatches(): boolean
  /** Runs the callback when the app closes. */
  onClose(callback: () => void): void
  /** The option `tiers`, as it is now. Empty without one. */
  tiers(): Tiers
  /** The option `prices`, as it is now. Undefined without a database. */
  readonly prices: PriceList | undefined
  /** Reports calls over time. Rejects without a database. */
  traffic(query: TrafficQuery): Promise<readonly TrafficRow[]>
  /** Sessions of browsers. */
  readonly sessions: Sessions
  /** The calls that run now in all app processes. */
  readonly runningCalls: Pick<CallDirectory, 'list' | 'next' | 'cancel'>
  /** The calls that run now. */
  readonly liveCalls: LiveCalls
  /**
   * Logs an error that no client can correct.
   *
   * @param fields describe the request, such as its `requestId`
   */
  report(error: LlmError, fields?: object): void
  /**
   * Creates the client of one request.
   *
   * @param caller a validated caller
   * @param request describes the request: the API and the route that received it, and its id. `disconnect` closes the
   *   connection, if the client does not read its answer. `forwarded` is set if another app forwards the request
   */
  clientOf(
    caller: Caller,
    request: {
      readonly dialect: string
      readonly route?: string
      readonly requestId?: string
      readonly header?: (name: string) => string | undefined
      readonly disconnect?: (() => void) | undefined
      readonly forwarded?: ForwardedCall | undefined
    },
  ): RouteClient
}
