// Compares the CPU time per streamed token of our server with that of a hand-written handler.
import { openConnection } from './support/client.mjs'
import { describeMachine, median, print, printTable, quartiles, startServer } from './support/measure.mjs'

const tokens = 512
const connections = 4
const answersPerRound = 48
const warmUps = 6
const rounds = 21

const contestants = [
  { label: 'bare Node handler', name: 'bare' },
  { label: 'bare Node handler, tokens from our engine', name: 'bare + engine' },
  { label: 'ours in Node', name: 'node' },
  { label: 'ours in Express', name: 'express' },
  { label: 'ours in Express, again (control)', name: 'express' },
]

await describeMachine()
for (const [pace, title] of [
  ['none', 'tokens without a pause'],
  ['turn', 'a turn of the event loop between tokens'],
]) {
  const runners = []
  try {
    for (const contestant of contestants) runners.push(await prepare(contestant, pace))
    assertSameBytes(runners)

    for (let round = -warmUps; round < rounds; round++) {
      for (const runner of runners) {
        const microseconds = await runner.measure()
        if (round >= 0) runner.results.push(microseconds)
      }
    }
    report(title, runners)
  } finally {
    for (const runner of runners) await runner.stop()
  }
}

async function prepare({ label, name }, pace) {
  const server = await startServer(name, { tokens, pace })
  const clients = await Promise.all(Array.from({ length: connections }, () => openConnection(server.port)))
  return {
    label,
    results: [],
    sample: await clients[0].ask(),
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

/** Checks that all contestants send the same frames, apart from ids, dates and the division into chunks. */
function assertSameBytes(runners) {
  const bodies = runners.map(({ sample }) =>
    sample
      .toString()
      .split('\r\n\r\n')
      .slice(1)
      .join('\r\n\r\n')
      .replace(/[0-9a-f]+\r\n|\r\n/g, '')
      .replace(/"id":"chatcmpl-[\w-]{21}"/g, '')
      .replace(/"created":\d{10}/g, ''),
  )
  const [first] = bodies
  for (const [index, body] of bodies.entries()) {
    if (body !== first || body.split('"content"').length !== tokens + 2)
      throw new Error(
        `"${runners[index].label}" sent other frames than "${runners[0].label}":\n${body.slice(0, 1_000)}`,
      )
  }
}

/** Computes ratios per round, so that a slow phase of the machine affects both sides. */
function report(title, runners) {
  const [bare] = runners
  const rows = runners.map(({ label, results }) => {
    const ratios = results.map((result, round) => result / bare.results[round])
    const [low, high] = quartiles(ratios)
    return [
      label,
      `**${median(ratios).toFixed(2)}**`,
      `${low.toFixed(2)} – ${high.toFixed(2)}`,
      `${median(results).toFixed(2)} µs`,
    ]
  })
  print(`\n### CPU of the server per token: ${title}\n`)
  printTable(['', 'ratio', 'quartiles', 'per token'], rows)

  const [once, again] = runners.slice(-2).map(({ results }) => median(results))
  const off = Math.abs(again / once - 1)
  if (off > 0.1)
    print(
      `WARNING: the control differs by ${Math.round(off * 100)} %. Repeat the benchmark on an idle machine.\n`,
    )
}
