/**
 * A Nest app with only the routes of Modelmount, as a handler for Node's server. Requests wait until the app
 * has started.
 */
import type { RequestListener } from 'node:http'
import type { Llm } from '@modelmount/core'
import { LlmModule, type LlmModuleExtras } from '@modelmount/nest'
import { type INestApplication, Module, type Type } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify'

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

/** The same with an app on Fastify. @param behind modules of the app behind the routes */
export function nestFastifyHandler(
  llm: Llm,
  options: LlmModuleExtras = {},
  behind: readonly Type[] = [],
): RequestListener {
  const starting = startFastify(llm, options, behind)
  return (req, res) => void starting.then((handler) => handler(req, res))
}

async function startFastify(
  llm: Llm,
  options: LlmModuleExtras,
  behind: readonly Type[],
): Promise<RequestListener> {
  class App {}
  Module({ imports: [LlmModule.forRoot({ llm, ...options }), ...behind] })(App)
  // Otherwise Fastify itself answers ids of more than 100 characters, with 414.
  const adapter = new FastifyAdapter({ routerOptions: { maxParamLength: 10_000 } })
  const app = await NestFactory.create<NestFastifyApplication>(App, adapter, { logger: false })
  await app.init()
  const instance = app.getHttpAdapter().getInstance()
  await instance.ready()
  return (req, res) => instance.routing(req, res)
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
