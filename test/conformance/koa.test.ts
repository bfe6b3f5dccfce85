import { llmRouter } from '@modelmount/koa'
import Koa from 'koa'
import { conformanceSuite, hostApp } from './suite.ts'

conformanceSuite('Koa', (llm, { prefix = '', ...options }) => {
  const router = llmRouter(llm, options).prefix(prefix)
  const app = new Koa()
    .use(router.routes())
    .use(router.allowedMethods())
    .use((ctx) => {
      ctx.respond = false
      hostApp(ctx.req, ctx.res)
    })
  app.silent = true // Otherwise Koa prints an error when a client disconnects.
  return app.callback()
})
