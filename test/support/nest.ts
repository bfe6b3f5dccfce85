/**
 * A Nest app with only the routes of Modelmount, as a handler for Node's server. Requests wait until the app
 * has started.
 */
import type { RequestListener } from 'node:http'
import type { Llm } from '@modelmount/core'
import { LlmModule, type LlmModuleExtras } from '@modelmount/nest'
import { NestFactory } from '@nestjs/core'

export function nestHandler(llm: Llm, options: LlmModuleExtras = {}): RequestListener {
  const starting = start(llm, options)
  return (req, res) => void starting.then((handler) => handler(req, res))
}

async function start(llm: Llm, options: LlmModuleExtras): Promise<RequestListener> {
  const module = LlmModule.forRoot({ llm, ...options })
  const app = await NestFactory.create(module, { bodyParser: false, logger: false })
  await app.init()
  return app.getHttpAdapter().getInstance()
}
