/** Options of a fleet, and their checks. */
import { checkInteger, checkKeys, checkNumber, checkObject, describeValue } from '../../options/check.ts'
import {
  type ResolvedUpstreamOptions,
  resolveUpstreamOptions,
  type UpstreamOptions,
} from '../upstream/options.ts'
import { paths } from '../wire/app-api.ts'
import { type Balance, balances, type LoadBound } from './choose-replica.ts'
import { type Membership, type ReplicaSource, toMembership } from './membership.ts'

/** `replicas` and what differs from one server. All other options are those of `upstreamEngine()`, for each replica. */
export interface FleetOptions extends Omit<UpstreamOptions, 'url'> {
  /** The servers: their base URLs, a DNS name with an address of each, or a function that returns their URLs. */
  readonly replicas: ReplicaSource
  /** How often the DNS name is resolved or the function called, in ms. @default 5,000 */
  readonly refreshMs?: number
  /**
   * `prefix`: to the replica that has most of the prompt in its cache, within the load bound. `least-tokens`: to the
   * replica that has fewest tokens to evaluate and to generate. `round-robin`: one after the other.
   *
   * @default 'prefix'
   */
  readonly balance?: Balance
  /** A replica gets at most this many times the mean of outstanding tokens. From 1.05 to 100. @default 1.25 */
  readonly loadFactor?: number
  /** Outstanding tokens up to which a replica gets calls whatever the others have. @default 8,192 */
  readonly loadFloorTokens?: number
  /**
   * Probes of the replicas. `false` turns them off: then only calls show what a replica can do.
   *
   * @default {}
   */
  readonly health?: false | FleetHealthOptions
  /** Failures of calls in a row after which a replica is ejected, unless it cannot be reached at all. @default 3 */
  readonly maxFailures?: number
  /** How long a replica gets fewer calls after it has joined or returned, in ms. @default 30,000 */
  readonly slowStartMs?: number
  /** How many further replicas a call tries before its first token. @default 2 */
  readonly maxRetries?: number
  /** Calls that may be sent again, as a share of all calls from 0 to 1. 50 more are possible at once. @default 0.2 */
  readonly retryBudget?: number
  /**
   * How long a call waits for its first token before it is also sent to a second replica, in ms. The first token of the two
   * wins, and the other call is aborted. Counts as a retry.
   *
   * @default no second call
   */
  readonly hedgeAfterMs?: number
}

/** Probes of the replicas of a fleet. */
export interface FleetHealthOptions {
  /**
   * Path below the base URL, which answers with status 200 while the replica can take calls.
   *
   * @default `/health` for vLLM, SGLang and llama-server, else the list of models
   */
  readonly path?: string
  /** Time between two probes of a replica, in ms. @default 5,000 */
  readonly intervalMs?: number
  /** How long a probe may take, in ms. @default 5,000 */
  readonly timeoutMs?: number
}

export interface ResolvedFleetOptions {
  readonly membership: Membership
  /** Returns the options of a replica. Throws a `TypeError` for an invalid URL. */
  readonly toUpstream: (url: string | URL) => ResolvedUpstreamOptions
  readonly balance: Balance
  readonly bound: LoadBound
  /** Undefined without probes. */
  readonly probe:
    | { readonly path: string; readonly intervalMs: number; readonly timeoutMs: number }
    | undefined
  readonly maxFailures: number
  readonly slowStartMs: number
  readonly maxRetries: number
  readonly retryBudget: number
  readonly hedgeAfterMs: number | undefined
}

const fleetNames = [
  ...['replicas', 'refreshMs', 'balance', 'loadFactor', 'loadFloorTokens', 'health', 'maxFailures'],
  ...['slowStartMs', 'maxRetries', 'retryBudget', 'hedgeAfterMs'],
]
const hourMs = 3_600_000

/** Throws a `TypeError` for an invalid option. */
export function resolveFleetOptions(options: FleetOptions): ResolvedFleetOptions {
  checkObject('', options)
  if ('url' in options) throw new TypeError('Unknown option `url`, expected `replicas`')
  const upstream = Object.fromEntries(Object.entries(options).filter(([name]) => !fleetNames.includes(name)))
  const toUpstream = (url: string | URL): ResolvedUpstreamOptions => ({
    ...resolveUpstreamOptions({ ...upstream, url }),
    // All replicas have the same models.
    identity: `fleet ${upstream.api ?? 'openai'}`,
  })
  // Checks the options that all replicas have.
  toUpstream('http://replica')
  const { replicas, balance = 'prefix', health = {}, loadFactor = 1.25, retryBudget = 0.2 } = options
  if (!balances.includes(balance))
    throw new TypeError(
      `Expected \`balance\` to be one of ${balances.join(', ')}, got ${describeValue(balance)}`,
    )
  checkNumber('loadFactor', loadFactor, 1.05, 100)
  checkNumber('retryBudget', retryBudget, 0, 1)
  const refreshMs = checkInteger('refreshMs', options.refreshMs, 100, hourMs) ?? 5_000
  return {
    membership: toMembership(replicas, refreshMs, toUpstream),
    ...{ toUpstream, balance, retryBudget, probe: toProbe(health, options) },
    bound: {
      factor: loadFactor,
      floorTokens: checkInteger('loadFloorTokens', options.loadFloorTokens, 0, 1e9) ?? 8_192,
    },
    maxFailures: checkInteger('maxFailures', options.maxFailures, 1, 1_000) ?? 3,
    slowStartMs: checkInteger('slowStartMs', options.slowStartMs, 0, hourMs) ?? 30_000,
    maxRetries: checkInteger('maxRetries', options.maxRetries, 0, 10) ?? 2,
    hedgeAfterMs: checkInteger('hedgeAfterMs', options.hedgeAfterMs, 1, hourMs),
  }
}

function toProbe(
  health: false | FleetHealthOptions,
  { api = 'openai', server }: FleetOptions,
): ResolvedFleetOptions['probe'] {
  if (health === false) return undefined
  checkObject('health', health)
  checkKeys('health.', health, ['path', 'intervalMs', 'timeoutMs'])
  const hasHealthRoute = server === 'vllm' || server === 'sglang' || server === 'llama-server'
  const byApi = api === 'ollama' ? '/api/tags' : api === 'modelmount' ? paths.models : '/v1/models'
  const { path = hasHealthRoute && api === 'openai' ? '/health' : byApi } = health
  if (typeof path !== 'string' || !path.startsWith('/'))
    throw new TypeError(`Expected \`health.path\` to begin with /, got ${describeValue(path)}`)
  return {
    path,
    intervalMs: checkInteger('health.intervalMs', health.intervalMs, 10, hourMs) ?? 5_000,
    timeoutMs: checkInteger('health.timeoutMs', health.timeoutMs, 10, hourMs) ?? 5_000,
  }
}
