/** An app that classifies its support tickets at night, and answers questions meanwhile. */
import { fileURLToPath } from 'node:url'
import { createLlm, LlmError } from '@modelmount/core'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import { Classification } from './classification.js'

/** In your app, they are in a database. */
const tickets = new Map(
  [
    { id: 'ticket-1', text: 'I was charged twice in October.' },
    { id: 'ticket-2', text: 'The app closes when I open my profile.' },
    { id: 'ticket-3', text: 'How can I change my password?' },
  ].map((ticket) => [ticket.id, ticket]),
)

export async function createApp(llm, tickets) {
  const classification = new Classification(llm, tickets)
  await classification.resume()
  const app = express()

  app.use('/llm', llmRouter(llm))

  app.get('/tickets', (_req, res) => {
    res.json([...tickets.values()])
  })

  // A cron job calls it at night. It returns at once, and the batch runs while the model has nothing else to do.
  app.post('/jobs', async (_req, res) => {
    const job = await classification.start()
    if (job) res.status(202).json(job)
    else res.status(204).end()
  })

  app.get('/jobs/:id', async (req, res) => {
    try {
      res.json(await classification.find(req.params.id))
    } catch (error) {
      if (!LlmError.is(error) || error.code !== 'not_found') throw error
      res.status(404).json({ error: 'no such job' })
    }
  })

  return { app, classification }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const database = fileURLToPath(new URL('data/modelmount.db', import.meta.url))
  const llm = await createLlm({ database })
  const { app, classification } = await createApp(llm, tickets)
  const server = app.listen(3000, '127.0.0.1')

  const close = async () => {
    server.close()
    await classification.close()
    await llm.close() // Gives back the requests that run. They run again after the next start.
  }
  process.once('SIGTERM', close)
  process.once('SIGINT', close)
}
