/** The routes of the app, of the models and of health, and the metrics on a server of their own. */
import { healthRouter, llmRouter } from '@modelmount/express'
import express from 'express'

export function createApp(llm) {
  const app = express().use(healthRouter(llm)).use('/llm', llmRouter(llm))

  app.get('/api/greeting', async (_req, res) => {
    const { text } = await llm.chat('Hello', { model: 'tiny' })
    res.json({ greeting: text })
  })

  return app
}

/** @param registry the metrics of Node.js, of this app and of Modelmount */
export function createMetricsApp(registry) {
  return express().get('/metrics', async (_req, res) => {
    res.type(registry.contentType).send(await registry.metrics())
  })
}
