import { createLlm } from '@modelmount/core'
import { llmRouter } from '@modelmount/express'
import express from 'express'

async function main() {
  const llm = await createLlm({ database: 'modelmount.db' })
  const app = express().use('/llm', llmRouter(llm))
  const server = app.listen(0, '127.0.0.1', () => {
    process.stdout.write(`http://127.0.0.1:${server.address().port}\n`)
  })
  process.once('SIGTERM', async () => {
    server.close()
    await llm.close({ drain: '10s' })
    server.closeIdleConnections()
  })
}

void main()
