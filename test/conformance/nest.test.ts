import type { IncomingMessage, ServerResponse } from 'node:http'
import { All, Controller, Module, Req, Res } from '@nestjs/common'
import { nestHandler } from '../support/nest.ts'
import { conformanceSuite, hostApp } from './suite.ts'

@Controller()
class HostApp {
  @All(['/', '/*path'])
  answer(@Req() req: IncomingMessage, @Res() res: ServerResponse) {
    hostApp(req, res)
  }
}
@Module({ controllers: [HostApp] })
class HostAppModule {}

conformanceSuite(
  'Nest',
  (llm, { authenticate, prefix, ...options }) =>
    nestHandler(llm, { ...options, path: prefix, ...(authenticate && { authenticate }) }, undefined, [
      HostAppModule,
    ]),
  {
    'model paths with dots, control characters or broken escapes get a 404 (OpenAI API)':
      'If a path cannot be percent-decoded, Express answers with 400 before any controller runs.',
  },
)
