/** Answers questions from documents: searches passages, and lets the model answer with the best ones. */
import { LlmError } from '@modelmount/core'
import express from 'express'
import { z } from 'zod'

const body = z.object({ question: z.string().trim().min(1).max(1_000) })

const system =
  'Answer the question with the help of these passages only. Say so if they do not contain the answer.'

/** @param models names of the models: `{ chat }` */
export function createApp(llm, index, models) {
  const app = express().use(express.json({ limit: '16kb' }))

  app.post('/search', async (req, res) => {
    const { success, data, error } = body.safeParse(req.body)
    if (!success) return res.status(400).json({ error: z.prettifyError(error) })
    res.json({ passages: await index.search(data.question, { signal: signalOf(res) }) })
  })

  app.post('/answers', async (req, res) => {
    const { success, data, error } = body.safeParse(req.body)
    if (!success) return res.status(400).json({ error: z.prettifyError(error) })
    const signal = signalOf(res)
    const passages = await index.search(data.question, { signal })
    const { text } = await llm.chat(data.question, {
      model: models.chat,
      system: [system, ...passages.map(({ passage }, number) => `[${number + 1}] ${passage}`)].join('\n\n'),
      maxTokens: 400,
      signal,
    })
    res.json({ answer: text, passages })
  })

  app.use((error, _req, res, next) => {
    if (res.closed) return // The client has disconnected.
    if (!LlmError.is(error)) return next(error)
    res.status(error.statusCode).set(error.headers).json({ error: error.message })
  })

  return app
}

/** Aborts when the client disconnects, so that the models stop. */
function signalOf(res) {
  const disconnected = new AbortController()
  res.on('close', () => disconnected.abort())
  return disconnected.signal
}
