/** All ways to mount the console, under `/tools/console`, as handlers for Node's server. */
import type { RequestListener } from 'node:http'
import { type ConsoleOptions, consoleRoutes } from '@modelmount/console'
import { consoleRouter } from '@modelmount/console/express'
import { consolePlugin } from '@modelmount/console/fastify'
import { consoleRouter as koaConsole } from '@modelmount/console/koa'
import { ConsoleModule } from '@modelmount/console/nest'
import type { Llm } from '@modelmount/core'
import { toFetchHandler, toNodeHandler } from '@modelmount/core/http'
import express from 'express'
import fastify from 'fastify'
import helmet from 'helmet'
import Koa from 'koa'
import { listenerOf } from './fastify.ts'
import { fetchHost } from './fetch.ts'
import { nestFastifyHandler, nestHandler } from './nest.ts'

const prefix = '/tools/console'

export const consoleMounts: Readonly<
  Record<string, (llm: Llm, options?: ConsoleOptions) => RequestListener>
> = {
  Express: (llm, options) => express().use(prefix, consoleRouter(llm, options)),
  'Express with helmet': (llm, options) => express().use(helmet()).use(prefix, consoleRouter(llm, options)),
  Fastify: (llm, options) => {
    const app = fastify()
    app.register(consolePlugin, { llm, prefix, ...options })
    return listenerOf(app)
  },
  Koa: (llm, options) => {
    const app = Object.assign(new Koa(), { silent: true })
    return app.use(koaConsole(llm, options).prefix(prefix).routes()).callback()
  },
  Nest: (llm, options) =>
    nestHandler(llm, { path: 'llm', isGlobal: true }, undefined, [
      ConsoleModule.forRoot({ path: prefix, ...options }) as never,
    ]),
  'Nest on Fastify': (llm, options) =>
    nestFastifyHandler(llm, { path: 'llm', isGlobal: true }, [
      ConsoleModule.forRoot({ path: prefix, ...options }) as never,
    ]),
  "Node's own server": (llm, options) => toNodeHandler(consoleRoutes(options), llm, { prefix }),
  fetch: (llm, options) =>
    fetchHost(toFetchHandler(consoleRoutes(options), llm, { prefix, remoteAddress: () => '127.0.0.1' })),
}
