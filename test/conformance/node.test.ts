import { routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { conformanceSuite } from './suite.ts'

conformanceSuite(
  "Node's own server",
  (llm, caller) => toNodeHandler(routesFor(), llm, { ...(caller && { authenticate: caller }) }),
  {},
  'all',
)
