import { nestHandler } from '../support/nest.ts'
import { conformanceSuite } from './suite.ts'

conformanceSuite(
  'Nest',
  (llm, caller) => nestHandler(llm, { unknownRoutes: 'error', ...(caller && { authenticate: caller }) }),
  {
    'paths of models with dots, control characters and broken escapes: a 404':
      'Express answers a path that cannot be percent-decoded with 400, in the words of Nest, before a controller is asked.',
  },
)
