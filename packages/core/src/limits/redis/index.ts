/**
 * The entry point `@modelmount/core/redis`: rate limits in Redis or Valkey. It loads no client. The host app passes its
 * own.
 */

export type { IoRedisClient, NodeRedisClient, RedisClient, ScriptArguments } from './client.ts'
export { type RedisLimiterStoreOptions, redisLimiterStore } from './store.ts'
