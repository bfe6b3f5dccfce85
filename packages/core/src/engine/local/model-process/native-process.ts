/**
 * Child process for native code of llama.cpp, which can crash or hang its process. The code runs in a worker
 * thread. This thread kills the process when the parent process ends or memory exceeds the limit.
 */
import { Socket } from 'node:net'
import { Worker } from 'node:worker_threads'
import { lowerPriority } from './workers/low-priority.ts'

/** Time between two memory checks. Native code can write up to 100 MB in this time. */
const pollIntervalMs = 50
/** llama.cpp recurses into nested templates. For words, `std::regex` takes 350 bytes for each character. */
const stackSizeMb = 128
const maxBytes = Number(process.argv[2]) * 1024 * 1024

// The parent never writes to standard input. The system closes it when the parent ends, even by a crash.
new Socket({ fd: 0 }).on('error', killProcess).on('close', killProcess).resume()
setInterval(() => {
  if (process.memoryUsage.rss() > maxBytes) killProcess()
}, pollIntervalMs)

lowerPriority()
const worker = new Worker(new URL('./native-worker.js', import.meta.url), { resourceLimits: { stackSizeMb } })
process.on('message', (job) => worker.postMessage(job))
worker.on('message', (result) => process.send?.(result))

function killProcess(): void {
  process.kill(process.pid, 'SIGKILL')
}
