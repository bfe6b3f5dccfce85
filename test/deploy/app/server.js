/** An app with the routes of models and of health, as the recipes of docs/operations/deploy expect it. */
import { createLlm } from '@modelmount/core'
import { healthRouter, llmRouter } from '@modelmount/express'
import express from 'express'

const llm = await createLlm()
const app = express().use(healthRouter(llm)).use(llmRouter(llm))
const { HOST = '127.0.0.1', PORT = '3000' } = process.env
const server = app.listen(Number(PORT), HOST, () => {
  process.stdout.write(`${process.pid} listens on ${server.address().port}\n`)
})

process.once('SIGTERM', async () => {
  await llm.close({ drain: '30s' })
  server.close()
  server.closeAllConnections()
  if (process.connected) process.disconnect()
})
