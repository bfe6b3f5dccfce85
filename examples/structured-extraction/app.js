/** Takes the text of an order, and returns the order as JSON. */
import { LlmError } from '@modelmount/core'
import express from 'express'
import { z } from 'zod'
import { extractOrder } from './extraction.js'

const body = z.object({ text: z.string().min(1).max(4_000) })

export function createApp(llm) {
  const app = express()

  app.post('/orders', express.json({ limit: '32kb' }), async (req, res) => {
    const { success, data, error } = body.safeParse(req.body)
    if (!success) return res.status(400).json({ error: z.prettifyError(error) })
    res.json(await extractOrder(llm, data.text, signalOf(res)))
  })

  app.use((error, _req, res, next) => {
    if (res.closed) return // The client has disconnected.
    if (!LlmError.is(error)) return next(error)
    if (error.code === 'invalid_output')
      return res.status(422).json({ error: 'no valid order', issues: error.details.schemaIssues ?? [] })
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
