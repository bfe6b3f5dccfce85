/** The entry point `@modelmount/core/operations`: routes for those who operate the app. */

export type { Activity, CallPhase, LiveCall } from '../diagnostics/live-calls.ts'
export type { Health, HealthCheck, HealthOptions, HealthStatus } from '../health/health-checks.ts'
export { activityRoutes } from './activity.ts'
export { openApiDocument } from './admin/index.ts'
export { type HealthRouteOptions, healthRoutes } from './health/index.ts'
export { type MetricsRouteOptions, metricsRoutes } from './metrics/index.ts'
