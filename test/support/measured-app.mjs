// The app of `measured-app.ts`, in a child process. `/measured` reports the ids of the model processes, the 99th
// percentile of the app's event loop delay since the last report, in ms, and the live objects of its heap, in bytes.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createLlm } from '@modelmount/core'
import { llmRouter } from '@modelmount/express'
import express from 'express'

const [models, socketPath] = process.argv.slice(2)
const llm = await createLlm({ models, auth: 'host' })
await llm.load('tiny')
const loopDelay = monitorEventLoopDelay({ resolution: 1 })
loopDelay.enable()

const app = express()
  .get('/measured', (_req, res) => {
    const modelProcesses = llm.loaded().map(({ processId }) => processId)
    const loopDelayMs = loopDelay.percentile(99) / 1e6
    globalThis.gc()
    res.json({ modelProcesses, loopDelayMs, heapBytes: process.memoryUsage().heapUsed })
    loopDelay.reset()
  })
  .use(llmRouter(llm, { authenticate: (req) => ({ id: req.get('x-tenant') ?? 'client' }) }))
const server = app.listen(0, '127.0.0.1', () => {
  app.listen(socketPath, () => process.stdout.write(`${server.address().port}\n`))
})
// The end of stdin: the parent process has exited, or asks this app to exit.
process.stdin.on('end', () => llm.close().then(() => process.exit())).resume()
