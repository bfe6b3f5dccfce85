/**
 * A Nest app with only the routes of Modelmount, as a handler for Node's server. Requests wait until the app
 * has started.
 */
import type { RequestListener } from 'node:http'
import type { Llm } from '@modelmount/core'
import { LlmModule, type LlmModuleExtras } from '@modelmount/nest'
import { type INestApplication, Module, type Type } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'

/**
 * @param configure sets up the app before its routes are mounted
 * @param behind modules of the app that are imported after the one of the routes
 */
export function nestHandler(
  llm: Llm,
  options: LlmModuleExtras = {},
  configure: (app: INestApplication) => void = () => {},
  behind: readonly Type[] = [],
): RequestListener {
  const starting = start(llm, options, configure, behind)
  return (req, res) => void starting.then((handler) => handler(req, res))
}

async function start(
  llm: Llm,
  options: LlmModuleExtras,
  configure: (app: INestApplication) => void,
  behind: readonly Type[],
): Promise<RequestListener> {
  class App {}
  Module({ imports: [LlmModule.forRoot({ llm, ...options }), ...behind] })(App)
  const app = await NestFactory.create(App, { bodyParser: false, logger: false })
  configure(app)
  await app.init()
  return app.getHttpAdapter().getInstance()
}
