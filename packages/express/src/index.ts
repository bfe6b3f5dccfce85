/** The entry point `@modelmount/express`. */

export { type RateLimitOptions, rateLimit } from './rate-limit.ts'
export {
  type AdminRouterOptions,
  adminRouter,
  createRouter,
  type HealthRouterOptions,
  healthRouter,
  llmRouter,
  type MetricsRouterOptions,
  metricsRouter,
  type RouterOptions,
} from './router.ts'
