import type { RequestListener } from 'node:http'
import type { Llm } from '@modelmount/core'
import { LlmModule } from '@modelmount/nest'
import { NestFactory } from '@nestjs/core'
import { conformanceSuite } from './suite.ts'

conformanceSuite('Nest', (llm) => {
  const starting = start(llm)
  return (req, res) => void starting.then((handler) => handler(req, res))
})

async function start(llm: Llm): Promise<RequestListener> {
  const module = LlmModule.forRoot({ llm, unknownRoutes: 'error' })
  const app = await NestFactory.create(module, { bodyParser: false, logger: false })
  await app.init()
  return app.getHttpAdapter().getInstance()
}
