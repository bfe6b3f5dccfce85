// Measures what 1,000 open streams cost a server: memory per stream, CPU and the delay of the event loop.
import { setTimeout as sleep } from 'node:timers/promises'
import { openStream } from './support/client.mjs'
import {
  describeMachine,
  median,
  percent,
  print,
  printTable,
  quartiles,
  startServer,
} from './support/measure.mjs'

const streams = 1_000
const openedAtOnce = 50
/** Tokens per stream: more than are read, so that no stream ends during the measurement. */
const tokens = 400
const settleMs = 1_000
const measureMs = 3_000
const rounds = 5

const contestants = [
  { label: 'bare Node handler', name: 'bare' },
  { label: 'bare Node handler, tokens from our engine', name: 'bare + engine' },
  { label: 'ours in Node', name: 'node' },
  { label: 'ours in Express', name: 'express' },
  { label: 'ours in Express, again (control)', name: 'express' },
].map((contestant) => ({ ...contestant, results: [] }))

await describeMachine()
for (let round = 0; round < rounds; round++) {
  for (const { name, results } of contestants) results.push(await measure(name))
}
report()

/**
 * Starts a new process each time, because memory that earlier streams left behind would falsify the result.
 */
async function measure(name) {
  const server = await startServer(name, { tokens, pace: 'timer' }, ['--expose-gc'])
  const open = []
  try {
    await openStreams(server.port, 20, open)
    for (const stream of open.splice(0)) stream.close()
    await sleep(200)
    const idle = await server.probe('memory')
    await server.probe('delay')
    await sleep(500)
    const idleDelay = await server.probe('delay')

    await openStreams(server.port, streams, open)
    await sleep(settleMs)
    const before = open.map(({ bytes }) => bytes)
    const cpuBefore = await server.probe('cpu')
    await server.probe('delay')
    await sleep(measureMs)
    const delay = await server.probe('delay')
    const cpu = ((await server.probe('cpu')) - cpuBefore) / (measureMs * 1_000)
    if (!open.every(({ bytes, closed }, index) => !closed && bytes > before[index]))
      throw new Error(`Some of the ${streams} streams of "${name}" ended or stalled.`)

    const busy = await server.probe('memory')
    return {
      rss: (busy.rss - idle.rss) / streams / 1_024,
      heap: (busy.heapUsed - idle.heapUsed) / streams / 1_024,
      p50: delay.p50,
      p99: delay.p99,
      max: delay.max,
      idleP99: idleDelay.p99,
      cpu,
    }
  } finally {
    for (const stream of open) stream.close()
    await server.stop()
  }
}

/** Opens a few streams at a time, so that the backlog of the server never fills. */
async function openStreams(port, count, open) {
  while (open.length < count) {
    const missing = Math.min(openedAtOnce, count - open.length)
    open.push(...(await Promise.all(Array.from({ length: missing }, () => openStream(port)))))
  }
}

function report() {
  const [bare] = contestants
  const rows = contestants.map(({ label, results }) => {
    const middle = (key) => median(results.map((result) => result[key]))
    const ratio = (key) =>
      median(results.map((result, round) => result[key] / bare.results[round][key])).toFixed(2)
    const [low, high] = quartiles(results.map(({ p99 }) => p99))
    return [
      label,
      `**${ratio('rss')}**`,
      `${middle('rss').toFixed(1)} kB`,
      `**${ratio('heap')}**`,
      `${middle('heap').toFixed(1)} kB`,
      `**${middle('p99').toFixed(1)} ms**`,
      `${low.toFixed(1)} – ${high.toFixed(1)} ms`,
      `${middle('p50').toFixed(1)} ms`,
      `${middle('max').toFixed(1)} ms`,
      `**${ratio('cpu')}**`,
      percent(middle('cpu')),
    ]
  })
  const idle = median(contestants.flatMap(({ results }) => results.map(({ idleP99 }) => idleP99)))

  print(`\n### ${streams} open streams with a token every 50 to 100 ms each\n`)
  const head = ['', 'RSS ratio', 'RSS per stream', 'heap ratio', 'heap per stream', 'delay p99', 'quartiles']
  printTable([...head, 'delay p50', 'delay max', 'CPU ratio', 'CPU of one core'], rows)
  print(`The delays are of the server's event loop. With no stream open, p99 is ${idle.toFixed(1)} ms.\n`)
  const controls = contestants.slice(-2).map(({ results }) => results)
  for (const key of ['rss', 'heap', 'p99', 'cpu']) {
    const [once, again] = controls.map((results) => median(results.map((result) => result[key])))
    const off = Math.abs(again / once - 1)
    if (off > 0.1)
      print(`WARNING: the control differs by ${percent(off)} in ${key}, so smaller differences are noise.`)
  }
}
