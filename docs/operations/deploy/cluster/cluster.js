/** Runs server.js in several workers, which share one port and the processes of loaded models: node cluster.js */
import cluster from 'node:cluster'

const workers = Number(process.env.WORKERS ?? 2)
let isStopping = false

cluster.setupPrimary({ exec: 'server.js' })
for (let count = 0; count < workers; count++) cluster.fork()

cluster.on('exit', (worker, code, signal) => {
  if (isStopping) return
  process.stderr.write(`Worker ${worker.process.pid} ended with ${signal ?? code}\n`)
  // A worker that ends at its start would otherwise be started again without a pause.
  setTimeout(() => !isStopping && cluster.fork(), 1_000)
})

for (const name of ['SIGINT', 'SIGTERM'])
  process.on(name, () => {
    // The workers drain, as server.js does alone. This process ends after the last of them.
    isStopping = true
    for (const worker of Object.values(cluster.workers)) worker.process.kill('SIGTERM')
  })
