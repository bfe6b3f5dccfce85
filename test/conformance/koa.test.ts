import { llmRouter } from '@modelmount/koa'
import Koa from 'koa'
import { conformanceSuite } from './suite.ts'

conformanceSuite('Koa', (llm, authenticate) => {
  const router = llmRouter(llm, { unknownRoutes: 'error', authenticate })
  const app = new Koa().use(router.routes()).use(router.allowedMethods())
  app.silent = true // Koa prints that a client has left.
  return app.callback()
})
