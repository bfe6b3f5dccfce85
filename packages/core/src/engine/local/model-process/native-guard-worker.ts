/** Guards a process whose main thread runs native code: kills it when its parent ends or its memory exceeds the limit. */
import { Socket } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'

/** A template writes up to 100 MB in this time. */
const pollIntervalMs = 50
const maxBytes = (workerData as number) * 1024 * 1024

// The parent never writes to standard input. It closes when the parent ends, however that ends.
new Socket({ fd: 0 }).on('error', killProcess).on('close', killProcess).resume()
setInterval(() => {
  if (process.memoryUsage.rss() > maxBytes) killProcess()
}, pollIntervalMs)
parentPort?.postMessage('watching')

function killProcess(): void {
  process.kill(process.pid, 'SIGKILL')
}
