/** An app with its own routes and the routes of models. One of its own routes asks a model. */
import { llmPlugin } from '@modelmount/fastify'
import fastify from 'fastify'

const users = [
  { id: 1, name: 'Ada' },
  { id: 2, name: 'Grace' },
]

export function createApp(llm) {
  const app = fastify()

  app.register(llmPlugin, { llm, prefix: '/llm' })
  app.addHook('preClose', () => llm.close({ drain: '10s' })) // running answers end before the server does

  app.get('/api/users', async () => users)

  app.get('/api/users/:id/story', async (request, reply) => {
    const user = users.find(({ id }) => id === Number(request.params.id))
    if (!user) return reply.code(404).send({ error: 'no such user' })
    const prompt = `Tell me a short story about ${user.name}.`
    const { text } = await llm.chat(prompt, { model: 'tiny', signal: signalOf(reply.raw) })
    return { user: user.name, story: text }
  })

  return app
}

/** Aborts when the client disconnects, so that the model stops. */
function signalOf(res) {
  const disconnected = new AbortController()
  res.on('close', () => disconnected.abort())
  return disconnected.signal
}
