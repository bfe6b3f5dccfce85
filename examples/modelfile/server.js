/**
 * An app that creates a model from a Modelfile when it starts. The app asks the model in process, and clients
 * of Ollama can ask it over HTTP.
 */
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { createLlm } from '@modelmount/core'
import { parseModelfile } from '@modelmount/core/models'
import { llmRouter } from '@modelmount/express'
import express from 'express'

export async function createApp(llm) {
  await createModel(llm, 'bob', new URL('Modelfile', import.meta.url))
  const app = express()

  app.use(llmRouter(llm, { dialects: ['ollama'] }))

  app.get('/greeting', async (_req, res) => {
    const { text } = await llm.chat('Who are you?', { model: 'bob' })
    res.json({ greeting: text })
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

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const app = await createApp(await createLlm())
  app.listen(3000, '127.0.0.1')
}
