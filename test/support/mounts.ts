/** All ways to mount the model routes, as handlers for Node's server. */
import type { RequestListener } from 'node:http'
import { type Caller, type Llm, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { llmRouter } from '@modelmount/express'
import { llmRouter as koaRouter } from '@modelmount/koa'
import express from 'express'
import Koa from 'koa'
import { fastifyHandler } from './fastify.ts'
import { fetchHandler } from './fetch.ts'
import { nestFastifyHandler, nestHandler } from './nest.ts'

export type Authenticate = () => Caller | undefined

/** @param authenticate only with `auth: 'host'` */
export type MountRoutes = (llm: Llm, authenticate?: Authenticate) => RequestListener

export const mounts: Readonly<Record<string, MountRoutes>> = {
  Express: (llm, authenticate) => express().use(llmRouter(llm, { authenticate })),
  Fastify: (llm, authenticate) => fastifyHandler(llm, { authenticate }),
  Koa: (llm, authenticate) => {
    const router = koaRouter(llm, { authenticate })
    return Object.assign(new Koa(), { silent: true }).use(router.routes()).callback()
  },
  Nest: (llm, authenticate) => nestHandler(llm, { ...(authenticate && { authenticate }) }),
  'Nest on Fastify': (llm, authenticate) =>
    nestFastifyHandler(llm, { ...(authenticate && { authenticate }) }),
  "Node's own server": (llm, authenticate) =>
    toNodeHandler(routesFor(), llm, { ...(authenticate && { authenticate }) }),
  fetch: (llm, authenticate) => fetchHandler(llm, { authenticate }),
}
