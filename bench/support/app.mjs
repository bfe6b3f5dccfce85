// An Express app with `llmRouter`, in a number of cluster workers. With 0 workers, it runs in a single
// process.
import cluster from 'node:cluster'
import { createLlm } from '@modelmount/core'
import { llmRouter } from '@modelmount/express'
import express from 'express'

const { workers, ...options } = JSON.parse(process.argv[2])

if (workers > 0 && cluster.isPrimary) startWorkers()
else await startApp()

function startWorkers() {
  let listening = 0
  cluster.on('listening', (_worker, { port }) => {
    if (++listening === workers) printAddress(port)
  })
  for (let worker = 0; worker < workers; worker++) cluster.fork()
  cluster.on('exit', () => {
    if (Object.keys(cluster.workers).length === 0) process.exit()
  })
  onShutdown(() => {
    for (const worker of Object.values(cluster.workers)) worker.kill()
  })
}

async function startApp() {
  const llm = await createLlm(options)
  const server = express()
    .use(llmRouter(llm))
    .listen(0, '127.0.0.1', () => {
      if (cluster.isPrimary) printAddress(server.address().port)
    })
  onShutdown(async () => {
    await llm.close()
    process.exit()
  })
}

function printAddress(port) {
  process.stdout.write(`Listening on http://127.0.0.1:${port}\n`)
}

/** Calls `stop` on SIGTERM, or when the benchmark has ended. */
function onShutdown(stop) {
  process.once('SIGTERM', stop)
  process.once('disconnect', stop)
}
