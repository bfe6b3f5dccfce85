/** An app with its own routes and the chat API under a prefix. One of its own routes asks the model. */
import { fileURLToPath } from 'node:url'
import { createLlm } from '@modelmount/core'
import { llmPlugin } from '@modelmount/fastify'
import fastify from 'fastify'

const users = [
  { id: 1, name: 'Ada' },
  { id: 2, name: 'Grace' },
]

export function createApp(llm, options = {}) {
  const app = fastify(options)

  app.register(llmPlugin, { llm, prefix: '/llm' })

  app.get('/api/users', async () => users)

  app.get('/api/users/:id/story', async (request, reply) => {
    const user = users.find(({ id }) => id === Number(request.params.id))
    if (!user) return reply.code(404).send({ error: 'no such user' })
    const { text } = await llm.chat(`Tell me a short story about ${user.name}.`, { model: 'tiny' })
    return { user: user.name, story: text }
  })

  return app
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const llm = await createLlm()
  const app = createApp(llm, { logger: true })
  app.addHook('onClose', () => llm.close())
  await app.listen({ port: 3000, host: '127.0.0.1' })
}
