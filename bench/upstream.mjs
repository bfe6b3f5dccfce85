// Compares what Modelmount, LiteLLM's proxy and a bare Node pipe add in front of the same llama-server.
import { parseArgs } from 'node:util'
import { modelPath } from '@modelmount/tiny-model'
import { ask, prompt, toQuestion } from './support/ask.mjs'
import { startBusyProcess, startLiteLlm, startOurs, startPipe, startUpstream } from './support/gateways.mjs'
import { IdleGuard } from './support/idle-guard.mjs'
import { describeMachine, median, print, printTable, quartiles } from './support/measure.mjs'
import { cpuSeconds, trees } from './support/processes.mjs'
import { takeRounds } from './support/rounds.mjs'

const { values: options } = parseArgs({
  options: {
    /** Executable of llama.cpp's server. */
    'llama-server': { type: 'string' },
    /** Executable of LiteLLM's proxy. Without it, LiteLLM is left out. */
    litellm: { type: 'string' },
    /** A GGUF file. @default the built-in model */
    model: { type: 'string', default: modelPath },
    rounds: { type: 'string', default: '12' },
    /** Calls to each gateway before the first round: V8 compiles code that runs often. */
    'warm-up': { type: 'string', default: '2000' },
    /** Names of measures, separated by commas. A large model has time for `throughput` only. */
    only: { type: 'string', default: 'first,stream,unary,throughput' },
    /** Tokens of each of the parallel streams. */
    tokens: { type: 'string', default: '150' },
    /** Id of the first of the 32 tokens that answers consist of. */
    words: { type: 'string', default: '300' },
  },
})
if (!options['llama-server']) throw new Error('Missing option: --llama-server, the executable.')

const parallel = 64
/** A process that uses about as much of a core as Modelmount does during the streams, and does nothing for them. */
const busyShare = 0.15
const besideBusy = 'llama-server, beside a process that only uses CPU'
const { bias } = toQuestion(options.model, Number(options.words))
const servers = []
const started = async (server) => {
  servers.push(await server)
  return servers.at(-1)
}

/** Short streams, one after the other: the time to their first tokens. */
async function first(side) {
  const times = []
  for (let index = 0; index < 20; index++)
    times.push((await ask(side, { prompt: prompt(20), tokens: 4 })).first)
  return { ms: median(times) }
}

/** Three streams, one after the other: the CPU time of the process in front of llama-server. */
async function stream(side) {
  const before = cpu(side)
  const tokens = 300
  for (let index = 0; index < 3; index++) await ask(side, { prompt: prompt(20), tokens })
  return { cpu: ((cpu(side) - before) * 1e6) / (3 * tokens) }
}

/** Whole answers, one after the other. */
async function unary(side) {
  const count = 20
  const before = cpu(side)
  const startedAt = performance.now()
  for (let index = 0; index < count; index++) await askWhole(side)
  return { ms: (performance.now() - startedAt) / count, cpu: ((cpu(side) - before) * 1e3) / count }
}

async function askWhole({ url, model, headers }) {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({
      ...{ model, max_tokens: 8, logit_bias: bias },
      messages: [{ role: 'user', content: prompt(20) }],
    }),
  })
  const body = await response.json()
  if (body.usage?.completion_tokens !== 8) throw new Error(`${url} answered ${JSON.stringify(body)}`)
}

/** As many streams at once as llama-server has slots. */
async function throughput(side) {
  const tokens = Number(options.tokens)
  const before = cpu(side)
  const startedAt = performance.now()
  await Promise.all(Array.from({ length: parallel }, () => ask(side, { prompt: prompt(20), tokens })))
  const seconds = (performance.now() - startedAt) / 1_000
  return { rate: (parallel * tokens) / seconds, cores: (cpu(side) - before) / seconds }
}

const cpu = ({ id }) => (id ? cpuSeconds(trees([id])) : 0)

const runs = { first, stream, unary, throughput }
const measures = Object.fromEntries(options.only.split(',').map((name) => [name, { run: runs[name] }]))

/** Short calls, 16 at a time. */
async function warmUp(side) {
  const worker = async (calls) => {
    for (let call = 0; call < calls; call++) await ask(side, { prompt: prompt(4), tokens: 4 })
  }
  await Promise.all(Array.from({ length: 16 }, () => worker(Number(options['warm-up']) / 16)))
}

try {
  const upstream = await started(startUpstream(options['llama-server'], options.model, parallel))
  const pipe = await started(startPipe(upstream))
  const ours = await started(startOurs(upstream))
  const busy = await started(startBusyProcess(busyShare))
  const litellm = options.litellm && (await started(startLiteLlm(options.litellm, upstream)))
  const sides = Object.fromEntries(
    Object.entries({
      'llama-server': { ...upstream, id: undefined },
      [besideBusy]: { ...upstream, id: undefined },
      'bare Node pipe': pipe,
      ours,
      'ours, again (control)': ours,
      ...(litellm && { LiteLLM: litellm }),
    }).map(([name, server]) => {
      const side = { ...server, bias }
      const begin = () => {
        busy.turn(name === besideBusy)
        return ask(side, { prompt: prompt(8), tokens: 8 })
      }
      return [name, { ...side, warmUp: begin }]
    }),
  )
  await describeMachine()
  for (const side of new Set([pipe, ours, litellm])) if (side) await warmUp({ ...side, bias })
  const guard = new IdleGuard(servers.map(({ id }) => id))
  report(await takeRounds(Number(options.rounds), measures, sides, guard), Object.keys(sides))
} finally {
  for (const server of servers.reverse()) await server.stop()
}

function report(samples, names) {
  const of = (measure, name, number) => samples[measure].map((round) => round[name][number])
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length
  /** Differences to llama-server itself in the same round. */
  const added = (measure, name) =>
    of(measure, name, 'ms').map((value, round) => value - samples[measure][round]['llama-server'].ms)
  const ratio = (name) => samples.throughput.map((round) => round[name].rate / round['llama-server'].rate)
  const inFront = names.filter((name) => !name.startsWith('llama-server'))
  const printMeasure = (measure, head, sides, toCells) => {
    if (samples[measure])
      printTable(
        ['', ...head],
        sides.map((name) => [name, ...toCells(name)]),
      )
  }
  printMeasure('first', ['first token adds, ms', 'quartiles'], inFront, (name) => [
    median(added('first', name)).toFixed(2),
    range(added('first', name)),
  ])
  printMeasure('stream', ['CPU per streamed token, µs'], inFront, (name) => [
    mean(of('stream', name, 'cpu')).toFixed(0),
  ])
  printMeasure('unary', ['whole answer adds, ms', 'quartiles', 'CPU, ms'], inFront, (name) => [
    median(added('unary', name)).toFixed(2),
    range(added('unary', name)),
    mean(of('unary', name, 'cpu')).toFixed(2),
  ])
  const streams = [`tokens/s of ${parallel} streams`, 'of llama-server', 'quartiles', 'cores']
  printMeasure('throughput', streams, names, (name) => [
    median(of('throughput', name, 'rate')).toFixed(0),
    median(ratio(name)).toFixed(3),
    range(ratio(name)),
    inFront.includes(name) ? mean(of('throughput', name, 'cores')).toFixed(2) : '–',
  ])
  const others = Object.values(samples).flatMap((rounds) => rounds.map((round) => round.others))
  print(`Other processes used at most ${Math.max(...others).toFixed(2)} of a core during a sample.`)
}

function range(values) {
  const [low, high] = quartiles(values)
  return `${low.toFixed(2)} – ${high.toFixed(2)}`
}
