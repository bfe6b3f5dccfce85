// An app with the console: node bench/support/console-app.mjs <database>. Sends its URL and the secret of a key with all
// scopes. Answers each message with its processor time and the delays of its event loop since the message before. The
// message `idle` also ends the measurement of these delays, which costs about 1 % of a core.
import { createServer } from 'node:http'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { consoleRouter } from '@modelmount/console/express'
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import express from 'express'

const [, , database] = process.argv
const llm = await createLlm({ engine: scriptedEngine('Hello there.'), auth: 'keys', database })
const { secret } = await llm.keys.create({ name: 'bench', scopes: ['admin', 'models', 'inference'] })
const server = createServer(express().use('/console', consoleRouter(llm))).listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))

// Samples each 10 ms, which it reports as the delay. Half a millisecond more is the precision of a timer.
const delays = monitorEventLoopDelay({ resolution: 10 })
delays.enable()
let before = process.cpuUsage()
process.on('message', (message) => {
  if (message === 'idle') delays.disable()
  const { user, system } = process.cpuUsage(before)
  process.send({
    cpuMs: (user + system) / 1_000,
    p99Ms: delays.percentile(99) / 1e6 - 10,
    maxMs: delays.max / 1e6 - 10,
  })
  delays.reset()
  before = process.cpuUsage()
})
process.on('disconnect', async () => {
  server.close()
  server.closeAllConnections()
  await llm.close()
})
process.send({ url: `http://127.0.0.1:${server.address().port}/console/`, secret })
