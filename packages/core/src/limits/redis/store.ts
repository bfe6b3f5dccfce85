import { checkKeys, describeValue } from '../../options/check.ts'
import type { LimiterStore } from '../limits.ts'
import { checkRedisClient, type RedisClient } from './client.ts'
import { openRedisLimiter } from './limiter.ts'

/** Options of `redisLimiterStore()`. */
export interface RedisLimiterStoreOptions {
  /**
   * The first part of all keys, in braces: `{modelmount}:requests:…`. So all keys are in one slot of a cluster, as the
   * script needs it. Apps with the same prefix share their counts. 1 to 100 characters, without braces.
   *
   * @default 'modelmount'
   */
  readonly prefix?: string | undefined
}

/**
 * Returns a store for the option `limiterStore` of `createLlm()` and `createRateLimiter()`. All processes whose clients
 * use the same server share their counts. Needs Redis 6 or later, or Valkey.
 *
 * @param client a connected client of `redis`, `ioredis` or `iovalkey`, or a cluster of these. The store does not close it
 * Throws a `TypeError` for an invalid option.
 */
export function redisLimiterStore(client: RedisClient, options: RedisLimiterStoreOptions = {}): LimiterStore {
  checkRedisClient(client)
  checkKeys('', options, ['prefix'])
  const { prefix = 'modelmount' } = options
  if (typeof prefix !== 'string' || !/^[^{}]{1,100}$/.test(prefix))
    throw new TypeError(
      `Expected \`prefix\` to be 1 to 100 characters without braces, got ${describeValue(prefix)}`,
    )
  return { open: ({ limits, now }) => openRedisLimiter(client, { limits, prefix, now }) }
}
