/** The app that the tests are about: one route that asks a model, and the routes of models. */
import { LlmError } from '@modelmount/core'
import { llmRouter } from '@modelmount/express'
import express from 'express'

export function createApp(llm) {
  const app = express()

  app.use('/llm', llmRouter(llm))

  app.get('/stories/:name', async (req, res) => {
    const prompt = `Tell me a short story about ${req.params.name}.`
    const options = { model: 'tiny', maxTokens: 100, temperature: 0, signal: signalOf(res) }
    const { text } = await llm.chat(prompt, options)
    res.json({ story: text })
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
