/** Types of `authenticate` in each adapter, which `npm run types` checks. Nothing runs. */
import { type Llm, routesFor } from '@modelmount/core'
import { toFetchHandler, toNodeHandler } from '@modelmount/core/http'
import { llmRouter } from '@modelmount/express'
import { llmPlugin } from '@modelmount/fastify'
import { llmRouter as koaRouter } from '@modelmount/koa'
import { LlmModule } from '@modelmount/nest'
import type { FastifyInstance } from 'fastify'
import { expectTypeOf, test } from 'vitest'

declare const llm: Llm
declare const app: FastifyInstance

/** As a session middleware types the user of a request. */
type Session = { readonly user: { readonly id: string } | null }
const findCaller = (request: unknown) => {
  const { user } = request as Session
  return user && { id: user.id }
}

test('`authenticate` may return null in each adapter', () => {
  expectTypeOf(findCaller).returns.toEqualTypeOf<{ id: string } | null>()
  const mount = () => [
    llmRouter(llm, { authenticate: findCaller }),
    koaRouter(llm, { authenticate: async (ctx) => findCaller(ctx) }),
    LlmModule.forRoot({ llm, authenticate: findCaller }),
    app.register(llmPlugin, { llm, authenticate: findCaller }),
    toNodeHandler(routesFor(), llm, { authenticate: findCaller }),
    toFetchHandler(routesFor(), llm, { authenticate: async (request) => findCaller(request) }),
  ]

  expectTypeOf(mount).toBeFunction()
})

test('a fetch handler has the second argument that its callbacks expect', () => {
  const mount = () => {
    const handle = toFetchHandler(routesFor(), llm, {
      remoteAddress: (_request, extra: { readonly ip: string }) => extra.ip,
      authenticate: (_request, { extra }) => ({ id: extra.ip }),
    })
    const plain = toFetchHandler(routesFor(), llm)
    // @ts-expect-error The callbacks need the second argument.
    void handle(new Request('http://localhost'))
    return [
      handle(new Request('http://localhost'), { ip: '127.0.0.1' }),
      plain(new Request('http://localhost')),
    ]
  }

  expectTypeOf(mount).toBeFunction()
})
