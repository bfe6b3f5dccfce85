/** Runs the script through the client of the host app: `redis` (node-redis), `ioredis`, or `iovalkey`. */
import { LlmError } from '../../errors.ts'
import { UncertainOutcome } from '../../storage/database.ts'
import { script } from './script.ts'

/** The methods of the package `redis`, versions 4 to 6, that the store calls: those of `createClient()` and `createCluster()`. */
export interface NodeRedisClient {
  /** False while the client is not connected. Clusters do not have it. */
  readonly isReady?: boolean
  /** Runs a script that the server knows by its SHA-1. */
  evalSha(sha1: string, options: ScriptArguments): Promise<unknown>
  /** Runs the text of a script. */
  eval(script: string, options: ScriptArguments): Promise<unknown>
}

/** Keys and arguments of a script, as the package `redis` takes them. */
export interface ScriptArguments {
  /** Keys that the script uses, all of them in one slot. */
  keys: string[]
  /** Values that the script reads. */
  arguments: string[]
}

/** The methods of `ioredis` and `iovalkey` that the store calls: those of `new Redis()` and `new Cluster()`. */
export interface IoRedisClient {
  /** `ready` while the client is connected. */
  readonly status: string
  /** Runs a script that the server knows by its SHA-1, with the keys first and then the arguments. */
  evalsha(sha1: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>
  /** Runs the text of a script, with the keys first and then the arguments. */
  eval(script: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>
}

/** A connected client of Redis or Valkey. */
export type RedisClient = NodeRedisClient | IoRedisClient

const isNodeRedis = (client: RedisClient): client is NodeRedisClient => 'evalSha' in client

/** Throws a `TypeError` if `client` is none of the known clients. */
export function checkRedisClient(client: RedisClient): void {
  const methods = client as Partial<NodeRedisClient & IoRedisClient> | undefined
  if (typeof (methods?.evalSha ?? methods?.evalsha) !== 'function' || typeof methods?.eval !== 'function')
    throw new TypeError('Expected a client of the package redis, ioredis or iovalkey')
}

/**
 * Runs the script once and returns its numbers. Rejects after 2 s at the latest: with an `UncertainOutcome` if the server
 * may have run the script, else with an `LlmError` `unavailable`.
 */
export async function runScript(
  client: RedisClient,
  keys: readonly string[],
  argument: string,
): Promise<readonly number[]> {
  // The client would queue the command for as long as the server is away.
  if (!isReady(client)) throw storeUnavailable(new Error('The client of Redis is not connected'))
  return sendScript(client, keys, argument)
}

/** Like `runScript()`, but waits for a client that is still connecting. */
export async function sendScript(
  client: RedisClient,
  keys: readonly string[],
  argument: string,
): Promise<readonly number[]> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Redis did not reply within ${timeoutMs} ms`)), timeoutMs)
  })
  try {
    const reply = await Promise.race([evaluate(client, keys, argument), timeout])
    return String(reply).split(' ').map(Number)
  } catch (cause) {
    if (isServerError(cause)) throw storeUnavailable(cause)
    throw new UncertainOutcome(message, { cause })
  } finally {
    clearTimeout(timer)
  }
}

/** Far more than an operation takes, and short enough for callers to wait. */
const timeoutMs = 2_000

/** A client of ioredis with `lazyConnect` has the status `wait`, and connects with its first command. */
const isReady = (client: RedisClient): boolean =>
  isNodeRedis(client) ? client.isReady !== false : client.status === 'ready' || client.status === 'wait'

async function evaluate(client: RedisClient, keys: readonly string[], argument: string): Promise<unknown> {
  const options = { keys: [...keys], arguments: [argument] }
  const list = [...keys, argument]
  try {
    return await (isNodeRedis(client)
      ? client.evalSha(script.sha1, options)
      : client.evalsha(script.sha1, keys.length, ...list))
  } catch (error) {
    // The server has started since, or has forgotten its scripts.
    if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
    return isNodeRedis(client)
      ? client.eval(script.source, options)
      : client.eval(script.source, keys.length, ...list)
  }
}

/**
 * Whether the server has rejected the command, so that it has had no effect. Such errors begin with a code, as in
 * `OOM command not allowed`. Those of the connection do not.
 */
const isServerError = (error: unknown): boolean => error instanceof Error && /^[A-Z]{2,} /.test(error.message)

const message = 'The limiter store is unavailable. Try again in 1 s.'

const storeUnavailable = (cause: unknown): LlmError =>
  new LlmError('unavailable', message, { retryAfterMs: 1_000 }, { cause })
