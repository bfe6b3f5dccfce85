/**
 * An app that creates a model from a Modelfile when it starts. The app asks the model in process, and clients
 * of Ollama can ask it over HTTP.
 */
import { readFile } from 'node:fs/promises'
import { LlmError } from '@modelmount/core'
import { parseModelfile } from '@modelmount/core/models'
import { llmRouter } from '@modelmount/express'
import express from 'express'

export async function createApp(llm) {
  await createModel(llm, 'bob', new URL('Modelfile', import.meta.url))
  const app = express()

  app.use(llmRouter(llm, { dialects: ['ollama'] }))

  app.get('/greeting', async (_req, res) => {
    const { text } = await llm.chat('Who are you?', { model: 'bob', signal: signalOf(res) })
    res.json({ greeting: text })
  })

  app.use((error, _req, res, next) => {
    if (res.closed) return // The client has disconnected.
    if (!LlmError.is(error)) return next(error)
    res.status(error.statusCode).set(error.headers).json({ error: error.message })
  })

  return app
}

/**
 * Creates the model again at each start. This costs little, because the model shares the files of its base
 * model.
 */
async function createModel(llm, name, file) {
  const { from, ...defaults } = parseModelfile(await readFile(file))
  const { signal } = new AbortController()
  for await (const { status } of llm.models.create({ name, from: from[0], ...defaults }, { signal }))
    if (status === 'success') return
}

/** Aborts when the client disconnects, so that the model stops. */
function signalOf(res) {
  const disconnected = new AbortController()
  res.on('close', () => disconnected.abort())
  return disconnected.signal
}
