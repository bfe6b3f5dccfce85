// An Express app with `llmRouter`, in a number of cluster workers. With 0 workers, it runs in a single
// process.
import cluster from 'node:cluster'
import { createLlm } from '@modelmount/core'
import { llmRouter } from '@modelmount/express'
import express from 'express'

const { workers, ...options } = JSON.parse(process.argv[2])

if (workers > 0 && cluster.isPrimary) lead()
else await work()

function lead() {
  let listening = 0
  cluster.on('listening', (_worker, { port }) => {
    if (++listening === workers) announce(port)
  })
  for (let worker = 0; worker < workers; worker++) cluster.fork()
  cluster.on('exit', () => {
    if (Object.keys(cluster.workers).length === 0) process.exit()
  })
  whenLeft(() => {
    for (const worker of Object.values(cluster.workers)) worker.kill()
  })
}

async function work() {
  const llm = await createLlm(options)
  const server = express()
    .use(llmRouter(llm))
    .listen(0, '127.0.0.1', () => {
      if (cluster.isPrimary) announce(server.address().port)
    })
  whenLeft(async () => {
    await llm.close()
    process.exit()
  })
}

function announce(port) {
  process.stdout.write(`Listening on http://127.0.0.1:${port}\n`)
}

/** Calls `leave` on SIGTERM, or when the benchmark has ended. */
function whenLeft(leave) {
  process.once('SIGTERM', leave)
  process.once('disconnect', leave)
}
