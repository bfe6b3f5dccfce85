/** The entry point `@modelmount/nest`. */
export { type ControllerOptions, createController } from './create-controller.ts'
export type { LlmRouteOptions } from './llm.controller.ts'
export { LlmHealthIndicator, type LlmHealthResult } from './llm.health-indicator.ts'
export { LlmModule, type LlmModuleExtras, type LlmModuleOptions } from './llm.module.ts'
export type { LlmRequest } from './llm.request.ts'
export { InjectLlm, LLM } from './llm.tokens.ts'
export { RATE_LIMITER, RateLimit, type RateLimitOptions } from './rate-limit.decorator.ts'
export { type LimitedRequest, RateLimitGuard } from './rate-limit.guard.ts'
export {
  RateLimitModule,
  type RateLimitModuleExtras,
  type RateLimitModuleOptions,
} from './rate-limit.module.ts'
export { summarizeRoutes } from './summarize-routes.ts'
