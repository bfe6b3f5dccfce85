import { routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { conformanceSuite, hostApp } from './suite.ts'

conformanceSuite(
  "Node's own server",
  (llm, { authenticate, unknownRoutes, cloudRoutes, llamaServerRoutes, prefix }) =>
    toNodeHandler(routesFor(undefined, { cloudRoutes, llamaServerRoutes }), llm, {
      ...{ prefix, authenticate },
      ...(unknownRoutes !== 'error' && { fallback: hostApp }),
    }),
  {},
  'all',
)
