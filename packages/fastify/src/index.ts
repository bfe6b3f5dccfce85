/** The entry point `@modelmount/fastify`. */

export {
  type AdminPluginOptions,
  addMount,
  adminPlugin,
  type HealthPluginOptions,
  healthPlugin,
  type LlmPluginOptions,
  llmPlugin,
  type MetricsPluginOptions,
  metricsPlugin,
} from './plugin.ts'
export { type RateLimitOptions, rateLimit } from './rate-limit.ts'
