/**
 * A Nest app with only the routes of Modelmount, as a handler for Node's server. Requests wait until the app
 * has started.
 */
import type { RequestListener } from 'node:http'
import type { Llm } from '@modelmount/core'
import { LlmModule, type LlmModuleExtras } from '@modelmount/nest'
import type { INestApplication } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'

/** @param configure sets up the app before its routes are mounted */
export function nestHandler(
  llm: Llm,
  options: LlmModuleExtras = {},
  configure: (app: INestApplication) => void = () => {},
): RequestListener {
  const starting = start(llm, options, configure)
  return (req, res) => void starting.then((handler) => handler(req, res))
}

async function start(
  llm: Llm,
  options: LlmModuleExtras,
  configure: (app: INestApplication) => void,
): Promise<RequestListener> {
  const module = LlmModule.forRoot({ llm, ...options })
  const app = await NestFactory.create(module, { bodyParser: false, logger: false })
  configure(app)
  await app.init()
  return app.getHttpAdapter().getInstance()
}
