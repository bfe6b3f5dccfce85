import { nestHandler } from '../support/nest.ts'
import { conformanceSuite } from './suite.ts'

conformanceSuite(
  'Nest',
  (llm, caller) => nestHandler(llm, { unknownRoutes: 'error', ...(caller && { authenticate: caller }) }),
  {
    'model paths with dots, control characters or broken escapes get a 404 (OpenAI API)':
      'If a path cannot be percent-decoded, Express answers with 400 before any controller runs.',
  },
)
