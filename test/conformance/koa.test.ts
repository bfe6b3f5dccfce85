import { llmRouter } from '@modelmount/koa'
import Koa from 'koa'
import { conformanceSuite } from './suite.ts'

conformanceSuite('Koa', (llm, caller) => {
  const router = llmRouter(llm, { unknownRoutes: 'error', caller })
  const app = new Koa().use(router.routes()).use(router.allowedMethods())
  app.silent = true // Koa prints that a client has left.
  return app.callback()
})
