import { llmRouter } from '@modelmount/express'
import express from 'express'

export function createApp(llm) {
  const app = express().use('/llm', llmRouter(llm))
  app.get('/story', async (_req, res) => {
    const { text } = await llm.chat('Tell me a story.', { model: 'tiny' })
    res.json({ text })
  })
  return app
}
