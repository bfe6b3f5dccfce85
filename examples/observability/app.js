/** The routes of the app, of the models and of health, and the metrics on a server of their own. */
import { LlmError } from '@modelmount/core'
import { healthRouter, llmRouter } from '@modelmount/express'
import express from 'express'

export function createApp(llm) {
  const app = express().use(healthRouter(llm)).use('/llm', llmRouter(llm))

  app.get('/api/greeting', async (_req, res) => {
    const { text } = await llm.chat('Hello', { model: 'tiny', signal: signalOf(res) })
    res.json({ greeting: text })
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

/** @param registry the metrics of Node.js, of this app and of Modelmount */
export function createMetricsApp(registry) {
  return express().get('/metrics', async (_req, res) => {
    res.type(registry.contentType).send(await registry.metrics())
  })
}
