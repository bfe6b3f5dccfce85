import { llmRouter } from '@modelmount/koa'
import Koa from 'koa'
import { conformanceSuite } from './suite.ts'

conformanceSuite('Koa', (llm, authenticate) => {
  const router = llmRouter(llm, { unknownRoutes: 'error', authenticate })
  const app = new Koa().use(router.routes()).use(router.allowedMethods())
  app.silent = true // Otherwise Koa prints an error when a client disconnects.
  return app.callback()
})
