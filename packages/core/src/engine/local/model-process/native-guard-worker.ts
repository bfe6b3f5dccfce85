/** Watches the process whose main thread is in native code: it must not outlive its parent, nor fill the machine's memory. */
import { Socket } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'

/** A template writes some 100 MB meanwhile. */
const pollIntervalMs = 50
const maxBytes = (workerData as number) * 1024 * 1024

// Nobody writes to standard input. It ends with the parent, however that ends.
new Socket({ fd: 0 }).on('error', killProcess).on('close', killProcess).resume()
setInterval(() => {
  if (process.memoryUsage.rss() > maxBytes) killProcess()
}, pollIntervalMs)
parentPort?.postMessage('watching')

function killProcess(): void {
  process.kill(process.pid, 'SIGKILL')
}
