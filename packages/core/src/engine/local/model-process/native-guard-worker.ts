/**
 * Kills its process when the parent process ends or memory exceeds the limit. Runs in a worker thread, since
 * native code blocks the main thread.
 */
import { Socket } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'

/** Time between two memory checks. A template can write up to 100 MB in this time. */
const pollIntervalMs = 50
const maxBytes = (workerData as number) * 1024 * 1024

// The parent never writes to standard input. The system closes it when the parent ends, even by a crash.
new Socket({ fd: 0 }).on('error', killProcess).on('close', killProcess).resume()
setInterval(() => {
  if (process.memoryUsage.rss() > maxBytes) killProcess()
}, pollIntervalMs)
parentPort?.postMessage('watching')

function killProcess(): void {
  process.kill(process.pid, 'SIGKILL')
}
