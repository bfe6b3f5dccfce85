import { createLlm } from '@modelmount/core'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import { greeting } from './greeting.js'

const llm = await createLlm({ database: 'modelmount.db' })
const app = express().use('/llm', llmRouter(llm))
app.get('/', (_req, res) => res.send(greeting))

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${server.address().port}\n`)
  process.send?.('ready') // for `wait_ready` of PM2
})

for (const signal of ['SIGINT', 'SIGTERM'])
  process.once(signal, async () => {
    server.close()
    await llm.close({ drain: '10s' })
    server.closeIdleConnections()
    process.exit()
  })
