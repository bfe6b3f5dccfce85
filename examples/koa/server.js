/** An app with its own routes and the chat API. One of its own routes asks the model. */
import { fileURLToPath } from 'node:url'
import { Router } from '@koa/router'
import { createLlm } from '@modelmount/core'
import { llmRouter } from '@modelmount/koa'
import Koa from 'koa'

const users = [
  { id: 1, name: 'Ada' },
  { id: 2, name: 'Grace' },
]

export function createApp(llm) {
  const app = new Koa()
  const chat = llmRouter(llm).prefix('/llm')
  const api = new Router({ prefix: '/api' })

  api.get('/users', (ctx) => {
    ctx.body = users
  })

  api.get('/users/:id/story', async (ctx) => {
    const user = users.find(({ id }) => id === Number(ctx.params.id))
    if (!user) return ctx.throw(404, 'no such user')
    const { text } = await llm.chat(`Tell me a short story about ${user.name}.`, { model: 'tiny' })
    ctx.body = { user: user.name, story: text }
  })

  app.use(chat.routes()).use(chat.allowedMethods())
  app.use(api.routes()).use(api.allowedMethods())
  return app
}

if (process.argv[1] === fileURLToPath(import.meta.url)) createApp(await createLlm()).listen(3000, '127.0.0.1')
