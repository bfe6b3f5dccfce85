/** Every mount of the routes, with an API key. */
import type { RequestListener } from 'node:http'
import { type Caller, createLlm, type Llm, routesFor } from '@modelmount/core'
import { toFetchHandler, toNodeHandler } from '@modelmount/core/http'
import { llmRouter as expressRouter } from '@modelmount/express'
import { llmRouter as koaRouter } from '@modelmount/koa'
import express from 'express'
import Koa from 'koa'
import { fastifyHandler } from '../support/fastify.ts'
import { fetchHost } from '../support/fetch.ts'
import { listen } from '../support/listen.ts'
import { nestHandler } from '../support/nest.ts'

export const keys = { right: 'a-valid-key', wrong: 'an-invalid-key' } as const

interface Mount {
  handler(llm: Llm): RequestListener
}

export const mounts = {
  'Express 5': {
    handler: (llm) => express().use(expressRouter(llm, { authenticate: (req) => callerOf(req.headers) })),
  },
  Fastify: {
    handler: (llm) => fastifyHandler(llm, { authenticate: (request) => callerOf(request.headers) }),
  },
  Koa: {
    handler: (llm) => {
      const app = new Koa().use(koaRouter(llm, { authenticate: (ctx) => callerOf(ctx.headers) }).routes())
      app.silent = true // Otherwise Koa prints an error when a client disconnects.
      return app.callback()
    },
  },
  Nest: {
    handler: (llm) => nestHandler(llm, { authenticate: (req) => callerOf(req.headers) }),
  },
  "Node's own server": {
    handler: (llm) => toNodeHandler(routesFor(), llm, { authenticate: (req) => callerOf(req.headers) }),
  },
  fetch: {
    handler: (llm) =>
      fetchHost(
        toFetchHandler(routesFor(), llm, {
          authenticate: ({ headers }) => callerOf(Object.fromEntries(headers)),
        }),
      ),
  },
} as const satisfies Record<string, Mount>

export interface Server {
  /** Base URL without a trailing slash. */
  readonly url: string
  /** Kills the model process with SIGKILL, so that it cannot report an error. */
  killEngine(): void
  close(): Promise<void>
}

/** Starts a server with the built-in model, and loads the model. */
export async function serve(mount: Mount, models: string): Promise<Server> {
  const llm = await createLlm({ models, auth: 'host', local: { contextSize: 4096 } })
  const { url, close } = await listen(mount.handler(llm))
  await llm.chat('Hello', { maxTokens: 1 })
  return {
    url,
    killEngine: () => {
      process.kill(llm.loaded()[0]?.processId as number, 'SIGKILL')
    },
    close: async () => {
      await close()
      await llm.close()
    },
  }
}

/** Returns the caller, or `undefined` without the right key. Anthropic's clients send it as `x-api-key`. */
function callerOf(headers: NodeJS.Dict<string | string[]>): Caller | undefined {
  const key = headers['x-api-key'] ?? String(headers.authorization).replace(/^Bearer /, '')
  return key === keys.right ? { id: 'ada', scopes: ['inference', 'models'] } : undefined
}
