/** An app that classifies its support tickets at night, and answers questions meanwhile. */
import { LlmError } from '@modelmount/core'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import { Classification } from './classification.js'

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
