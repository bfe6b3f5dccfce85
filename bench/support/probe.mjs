// Loaded into our server with `--import`. Reports the delay of the server's event loop to the benchmark.
import { monitorEventLoopDelay } from 'node:perf_hooks'

const delay = monitorEventLoopDelay({ resolution: 1 })

const probes = {
  /** Starts measuring. Not always on, because a sample every millisecond costs CPU time. */
  watch: () => {
    delay.reset()
    delay.enable()
  },
  /** Event loop delay since `watch`, in milliseconds. */
  delay: () => {
    delay.disable()
    return { p99: delay.percentile(99) / 1e6, max: delay.max / 1e6 }
  },
}

process.on('message', (probe) => process.send(probes[probe]() ?? null))
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
process.channel.unref()
