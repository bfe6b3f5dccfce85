/** An app with its own routes and the routes of models. One of its own routes asks a model. */
import { Router } from '@koa/router'
import { llmRouter } from '@modelmount/koa'
import Koa from 'koa'

const users = [
  { id: 1, name: 'Ada' },
  { id: 2, name: 'Grace' },
]

export function createApp(llm) {
  const app = new Koa()
  const models = llmRouter(llm).prefix('/llm')
  const api = new Router({ prefix: '/api' })

  api.get('/users', (ctx) => {
    ctx.body = users
  })

  api.get('/users/:id/story', async (ctx) => {
    const user = users.find(({ id }) => id === Number(ctx.params.id))
    if (!user) return ctx.throw(404, 'no such user')
    const prompt = `Tell me a short story about ${user.name}.`
    const { text } = await llm.chat(prompt, { model: 'tiny', signal: signalOf(ctx.res) })
    ctx.body = { user: user.name, story: text }
  })

  app.use(models.routes()).use(models.allowedMethods())
  app.use(api.routes()).use(api.allowedMethods())
  app.on('error', (error, ctx) => {
    if (!ctx?.res.closed) app.onerror(error) // prints errors, but not those of clients that have disconnected
  })
  return app
}

/** Aborts when the client disconnects, so that the model stops. */
function signalOf(res) {
  const disconnected = new AbortController()
  res.on('close', () => disconnected.abort())
  return disconnected.signal
}
