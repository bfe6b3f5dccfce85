/** An app with its own routes and the chat API. One of its own routes asks the model. */
import { fileURLToPath } from 'node:url'
import { createLlm } from '@modelmount/core'
import { llmRouter } from '@modelmount/express'
import express from 'express'

const users = [
  { id: 1, name: 'Ada' },
  { id: 2, name: 'Grace' },
]

export function createApp(llm) {
  const app = express()

  app.use('/llm', llmRouter(llm))

  app.get('/api/users', (_req, res) => {
    res.json(users)
  })

  app.get('/api/users/:id/story', async (req, res) => {
    const user = users.find(({ id }) => id === Number(req.params.id))
    if (!user) return res.status(404).json({ error: 'no such user' })
    const { text } = await llm.chat(`Tell me a short story about ${user.name}.`, { model: 'tiny' })
    res.json({ user: user.name, story: text })
  })

  return app
}

if (process.argv[1] === fileURLToPath(import.meta.url)) createApp(await createLlm()).listen(3000, '127.0.0.1')
