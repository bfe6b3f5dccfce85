// An app with our routes, for a child process. `/measured` reports the id of its model process and the 99th
// percentile of its event loop delay, in ms.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createLlm } from '@modelmount/core'
import { llmRouter } from '@modelmount/express'
import express from 'express'

const [models] = process.argv.slice(2)
const llm = await createLlm({ models })
await llm.load('tiny')
const loopDelay = monitorEventLoopDelay({ resolution: 1 })
loopDelay.enable()

const server = express()
  .use(llmRouter(llm))
  .get('/measured', (_req, res) => {
    const [{ processId }] = llm.loaded()
    res.json({ processId, loopDelayMs: loopDelay.percentile(99) / 1e6 })
  })
  .listen(0, '127.0.0.1', () => process.stdout.write(`${server.address().port}\n`))
// The end of stdin: the parent process has exited, or asks this app to exit.
process.stdin.on('end', () => llm.close().then(() => process.exit())).resume()
