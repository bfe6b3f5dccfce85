/** An app with its own routes and the routes of models. One of its own routes asks a model. */
import { LlmError } from '@modelmount/core'
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
    const prompt = `Tell me a short story about ${user.name}.`
    const { text } = await llm.chat(prompt, { model: 'tiny', signal: signalOf(res) })
    res.json({ user: user.name, story: text })
  })

  app.use((error, _req, res, next) => {
    if (res.closed) return // The client has disconnected.
    if (!LlmError.is(error)) return next(error)
    res.status(error.statusCode).set(error.headers).json({ error: error.message })
  })

  return app
}

/** Aborts when the client disconnects, so that the model stops. */
function signalOf(res) {
  const disconnected = new AbortController()
  res.on('close', () => disconnected.abort())
  return disconnected.signal
}
