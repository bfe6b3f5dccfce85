// Loaded into our own server with `--import`: tells the bench how long its event loop was held up.
import { monitorEventLoopDelay } from 'node:perf_hooks'

const delay = monitorEventLoopDelay({ resolution: 1 })

const probes = {
  /** Only while somebody wants to know: a look every millisecond is work, too. */
  watch: () => {
    delay.reset()
    delay.enable()
  },
  /** Since `watch`, in milliseconds. */
  delay: () => {
    delay.disable()
    return { p99: delay.percentile(99) / 1e6, max: delay.max / 1e6 }
  },
}

process.on('message', (probe) => process.send(probes[probe]() ?? null))
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
process.channel.unref()
