// Compares the CPU time of streamed tokens with metrics and traces, and without them.
import { createServer } from 'node:http'
import { openConnection } from './support/client.mjs'
import { describeMachine, median, print, printTable, quartiles, startServer } from './support/measure.mjs'

const tokens = 512
const connections = 4
const answersPerRound = 48
const warmUps = Number(process.env.WARM_UPS ?? 6)
const rounds = Number(process.env.ROUNDS ?? 21)
const target = 1.05

const withoutEvents = ['--import', new URL('support/without-events.mjs', import.meta.url).href]
const contestants = [
  { label: 'off: no subscriber', name: 'express' },
  { label: 'metrics and traces', name: 'express, observed' },
  { label: 'metrics', name: 'express, metrics' },
  { label: 'traces', name: 'express, traces' },
  { label: 'the code of the events removed', name: 'express', execArgv: withoutEvents },
  { label: 'off, again (control)', name: 'express' },
]

const collector = createServer((req, res) => {
  req.resume()
  req.once('end', () => res.writeHead(200, { 'content-type': 'application/json' }).end('{}'))
}).listen(0, '127.0.0.1')
await new Promise((resolve) => collector.once('listening', resolve))
const traces = `http://127.0.0.1:${collector.address().port}/v1/traces`

await describeMachine()
const runners = []
try {
  for (const contestant of contestants) runners.push(await prepare(contestant))
  for (let round = -warmUps; round < rounds; round++) {
    // Each contestant is first, second and so on equally often.
    const order = runners.map((_, index) => runners[(index + round + warmUps) % runners.length])
    for (const runner of order) {
      const microseconds = await runner.measure()
      if (round >= 0) runner.results.push(microseconds)
    }
  }
  report()
} finally {
  for (const runner of runners) await runner.stop()
  collector.closeAllConnections()
  collector.close()
}

async function prepare({ label, name, execArgv }) {
  const server = await startServer(name, { tokens, pace: 'turn', traces }, execArgv)
  const clients = await Promise.all(Array.from({ length: connections }, () => openConnection(server.port)))
  return {
    label,
    results: [],
    measure: async () => {
      const before = await server.probe('cpu')
      await Promise.all(
        clients.map(async (client) => {
          for (let answer = 0; answer < answersPerRound / connections; answer++) await client.ask()
        }),
      )
      return ((await server.probe('cpu')) - before) / (answersPerRound * tokens)
    },
    stop: async () => {
      for (const client of clients) client.close()
      await server.stop()
    },
  }
}

/** Computes ratios per round, so that a slow phase of the machine affects both sides. */
function report() {
  const [off] = runners
  const ratiosOf = ({ results }) => results.map((result, round) => result / off.results[round])
  const rows = runners.map((runner) => {
    const ratios = ratiosOf(runner)
    const [low, high] = quartiles(ratios)
    return [
      runner.label,
      `**${median(ratios).toFixed(3)}**`,
      `${low.toFixed(3)} – ${high.toFixed(3)}`,
      `${median(runner.results).toFixed(2)} ms`,
    ]
  })
  print('\n### CPU of the server per 1,000 streamed tokens\n')
  printTable(['', 'ratio', 'quartiles', 'per 1,000 tokens'], rows)

  const control = Math.abs(median(ratiosOf(runners.at(-1))) - 1)
  const observed = median(ratiosOf(runners[1]))
  print(
    `Metrics and traces: ${observed.toFixed(3)}, target ${target}: ${observed <= target ? 'met' : 'missed'}.`,
  )
  if (control > 0.05)
    print(`WARNING: the control differs by ${(control * 100).toFixed(1)} %. Repeat it on an idle machine.`)
}
