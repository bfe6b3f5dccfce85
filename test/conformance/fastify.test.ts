import fastify from 'fastify'
import { fastifyHandler } from '../support/fastify.ts'
import { conformanceSuite } from './suite.ts'

conformanceSuite(
  'Fastify',
  (llm, { prefix, ...options }) => {
    // Otherwise Fastify itself answers ids of more than 100 characters, with 414.
    const app = fastify({ routerOptions: { maxParamLength: 10_000 } })
    // The app behind the routes, like `hostApp`. At the root, `error` sets the only handler of an app.
    if (options.unknownRoutes !== 'error')
      app.setNotFoundHandler(({ body }, reply) => reply.header('x-answered-by', 'the app').send(body))
    return fastifyHandler(llm, { ...options, ...(prefix !== undefined && { prefix }) }, app)
  },
  {
    'model paths with dots, control characters or broken escapes get a 404 (OpenAI API)':
      'If a path cannot be percent-decoded, Fastify answers with 400 before any hook or route runs.',
  },
)
