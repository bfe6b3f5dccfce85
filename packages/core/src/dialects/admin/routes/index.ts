/** All routes of the admin API. The OpenAPI document is created from this table. */
import type { AdminRoute } from '../route.ts'
import { activityRoutes } from './activity.ts'
import { auditRoutes } from './audit.ts'
import { batchRoutes } from './batches.ts'
import { callRoutes } from './calls.ts'
import { keyRoutes } from './keys.ts'
import { limitRequestRoutes } from './limit-requests.ts'
import { meRoutes } from './me.ts'
import { priceRoutes } from './prices.ts'
import { tenantRoutes } from './tenants.ts'
import { tierRoutes } from './tiers.ts'
import { trafficRoutes } from './traffic.ts'
import { usageRoutes } from './usage.ts'

export const adminRouteTable: readonly AdminRoute[] = [
  ...keyRoutes,
  ...limitRequestRoutes,
  ...meRoutes,
  ...tierRoutes,
  ...priceRoutes,
  ...tenantRoutes,
  ...usageRoutes,
  ...trafficRoutes,
  ...activityRoutes,
  ...callRoutes,
  ...batchRoutes,
  ...auditRoutes,
]
