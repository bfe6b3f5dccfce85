import { fastifyHandler } from '../support/fastify.ts'
import { conformanceSuite } from './suite.ts'

conformanceSuite(
  'Fastify',
  (llm, authenticate) => fastifyHandler(llm, { unknownRoutes: 'error', authenticate }),
  {
    'model paths with dots, control characters or broken escapes get a 404 (OpenAI API)':
      'If a path cannot be percent-decoded, Fastify answers with 400 before any hook or route runs.',
  },
)
