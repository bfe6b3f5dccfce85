import { All, Controller, Module, Req, Res } from '@nestjs/common'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { nestFastifyHandler } from '../support/nest.ts'
import { conformanceSuite } from './suite.ts'

/** The app behind the routes, like `hostApp`. Fastify parses the bodies of its routes. */
@Controller()
class HostApp {
  @All(['/', '/*'])
  answer(@Req() { body }: FastifyRequest, @Res() reply: FastifyReply) {
    reply.header('x-answered-by', 'the app').send(body)
  }
}
@Module({ controllers: [HostApp] })
class HostAppModule {}

conformanceSuite(
  'Nest on Fastify',
  (llm, { authenticate, prefix, ...options }) =>
    nestFastifyHandler(
      llm,
      { ...options, path: prefix, ...(authenticate && { authenticate }) },
      // Fastify allows one route per method and path, and at the root `error` takes all that is left.
      options.unknownRoutes === 'error' ? [] : [HostAppModule],
    ),
  {
    'model paths with dots, control characters or broken escapes get a 404 (OpenAI API)':
      'If a path cannot be percent-decoded, Fastify answers with 400 before any controller runs.',
  },
)
