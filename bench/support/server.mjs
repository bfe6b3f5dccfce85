// Runs one contestant in this process, and measures the process when the benchmark asks for it.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { contestants, listen } from './contestants.mjs'

const [name, script] = process.argv.slice(2)
const delay = monitorEventLoopDelay({ resolution: 1 })
delay.enable()

const probes = {
  /** User and system time of the whole process so far, in microseconds. */
  cpu: () => {
    const { user, system } = process.cpuUsage()
    return user + system
  },
  /** Memory after garbage collection, in bytes. */
  memory: () => {
    globalThis.gc()
    globalThis.gc()
    const { rss, heapUsed } = process.memoryUsage()
    return { rss, heapUsed }
  },
  /** Event loop delay since the last request for it, in milliseconds. */
  delay: () => {
    const [p50, p99, max] = [delay.percentile(50), delay.percentile(99), delay.max].map((ns) => ns / 1e6)
    delay.reset()
    return { p50, p99, max }
  },
}

const port = await listen(await contestants[name](JSON.parse(script)))
process.on('message', (probe) => process.send(probes[probe]()))
process.once('disconnect', () => process.exit())
process.send(port)
