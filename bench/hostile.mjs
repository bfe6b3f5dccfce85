// Measures the longest gaps of eight streams while hostile requests go to another model, or to the same
// model.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { modelPath } from '@modelmount/tiny-model'
import { ask, prompt, toQuestion } from './support/ask.mjs'
import { percentile, whileAllDecode } from './support/engine-measures.mjs'
import { hostileInputs, withHostileTemplate } from './support/hostile-inputs.mjs'
import { allowed, IdleGuard } from './support/idle-guard.mjs'
import { describeMachine, median, print, printProgress, printTable, quartiles } from './support/measure.mjs'
import { start } from './support/serve.mjs'

const { values: options } = parseArgs({
  options: {
    /** GGUF file of the model that generates the streams. */
    model: { type: 'string' },
    threads: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '7' },
    /** Tokens per answer. The default takes about 20 seconds. */
    tokens: { type: 'string', default: '170' },
    words: { type: 'string', default: '300' },
    /** Kinds of hostile input, separated by commas. */
    only: { type: 'string' },
    /** File that receives all numbers. Rounds that it already contains are kept and counted. */
    json: { type: 'string' },
  },
})
const { model, threads, json } = options
if (!model) throw new Error('Missing option: --model file.gguf')

const streams = 8
/** Pause between two hostile calls, in milliseconds. */
const pauseMs = 100
/** Time after which the server has ended an aborted hostile call, in milliseconds. */
const settleMs = 1_000

const folder = await mkdtemp(join(tmpdir(), 'hostile-'))
const hostile = 'hostile'
const file = join(folder, `${hostile}.gguf`)
const app = await open()
try {
  const target = { ...toQuestion(model, Number(options.words)), url: app.url }
  const kinds = choose({
    idle: {},
    template: sending(hostile, 'template'),
    schema: sending(hostile, 'schema'),
    grammar: sending(hostile, 'grammar'),
    'own-schema': sending(target.model, 'schema'),
    'own-grammar': sending(target.model, 'grammar'),
    control: {},
  })
  // Loads both models now, so that no sample includes the load.
  await ask(target, { prompt: prompt(8), tokens: 1 })
  const { how } = await call({ model: hostile, messages: [{ role: 'user', content: 'Hello' }] })
  if (how !== '200') throw new Error(`The call of the other model failed: ${how}`)

  print(`## ${streams} streams of ${basename(model)} during hostile input, --threads ${threads}\n`)
  await describeMachine()
  const samples = await takeRounds(kinds, target, new IdleGuard([app.id]))
  print(`${samples.idle.length} rounds, ${options.tokens} tokens per stream\n`)
  reportGaps(samples)
  reportCalls(samples)
} finally {
  await app.stop()
  await rm(folder, { recursive: true })
}

/** Starts an app with two models. */
async function open() {
  await writeFile(file, withHostileTemplate(await readFile(modelPath)))
  const local = { threads: Number(threads), contextSize: 2_048, parallel: streams, keepAlive: 'forever' }
  const app = fileURLToPath(new URL('support/app.mjs', import.meta.url))
  return start([app, JSON.stringify({ workers: 0, models: [model, file], local })])
}

/** Returns the inputs of one kind in turn, without end. */
function sending(model, kind) {
  const inputs = Object.entries(hostileInputs[kind])
  const forever = (function* () {
    for (;;) yield* inputs
  })()
  const next = () => {
    const [what, fields] = forever.next().value
    return [what, { model, messages: [{ role: 'user', content: 'Hello' }], ...fields }]
  }
  return { next }
}

function choose(all) {
  const only = options.only?.split(',')
  return Object.fromEntries(
    Object.entries(all).filter(([name, { next }]) => !next || !only || only.includes(name)),
  )
}

/** Each round begins with another kind. */
async function takeRounds(kinds, target, guard) {
  const names = Object.keys(kinds)
  const samples = json && existsSync(json) ? JSON.parse(readFileSync(json, 'utf8')).samples : {}
  for (let round = 1; round <= Number(options.rounds); round++) {
    for (let turn = 0; turn < names.length; turn++) {
      const name = names[(round + turn) % names.length]
      const { value, others } = await guard.take(() => sample(target, kinds[name]))
      samples[name] = [...(samples[name] ?? []), { ...value, others }]
    }
    if (json) writeFileSync(json, JSON.stringify({ options, samples }, null, 2))
    printProgress(`round ${round} of ${options.rounds}, ${guard.retakes} samples repeated so far`)
  }
  return samples
}

/** Sends the hostile calls only while all streams are generating. */
async function sample(target, { next }) {
  const tokens = Number(options.tokens)
  const done = new AbortController()
  let begin
  const begun = new Promise((resolve) => {
    begin = resolve
  })
  let waiting = streams
  const onToken = (count) => {
    if (count === 1 && --waiting === 0) begin()
  }
  const answers = Array.from({ length: streams }, () => ask(target, { prompt: prompt(8), tokens, onToken }))
  const oneEnded = Promise.race(answers).catch(() => {})
  const sent = Promise.race([begun, oneEnded]).then(() => (next ? send(next, done.signal) : []))
  await oneEnded
  done.abort()
  const calls = await sent
  await Promise.allSettled(answers)
  await sleep(settleMs)
  const { gaps, rate } = whileAllDecode((await Promise.all(answers)).map(({ times }) => times))
  return { longest: Math.max(...gaps), p99: percentile(gaps, 0.99), middle: median(gaps), rate, calls }
}

/** Sends one call at a time until the signal aborts. Returns the calls that had ended by then. */
async function send(next, signal) {
  const calls = []
  while (!signal.aborted) {
    const [what, fields] = next()
    const ended = await call(fields, signal).catch((error) => ({ how: String(error) }))
    if (!signal.aborted) calls.push({ what, ...ended })
    await sleep(pauseMs, undefined, { signal }).catch(() => {})
  }
  return calls
}

async function call(fields, signal = null) {
  const startedAt = performance.now()
  const response = await fetch(`${app.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ max_tokens: 16, ...fields }),
    signal,
  })
  const { error } = await response.json()
  const how = [response.status, ...(error ? [error.code ?? error.type] : [])].join(' ')
  return { how, ms: performance.now() - startedAt }
}

function reportGaps(samples) {
  const labels = {
    idle: 'none',
    template: 'templates of another model',
    schema: 'schemas for another model',
    grammar: 'grammars for another model',
    'own-schema': 'schemas for the same model',
    'own-grammar': 'grammars for the same model',
    control: 'none, again (control)',
  }
  const longest = (name) => samples[name].map((sample) => sample.longest)
  printTable(
    [
      'hostile input',
      'longest gap, ms',
      'quartiles',
      'ratio',
      'target',
      'p99 gap, ms',
      'median gap, ms',
      'tokens/s',
      'valid',
    ],
    Object.keys(labels)
      .filter((name) => name in samples)
      .map((name) => {
        const of = (number) => median(samples[name].map((sample) => sample[number])).toFixed(1)
        const ratio = median(longest(name)) / median(longest('idle'))
        const others = Math.max(...samples[name].map((sample) => sample.others))
        return [
          labels[name],
          of('longest'),
          quartiles(longest(name))
            .map((ms) => ms.toFixed(0))
            .join(' – '),
          `**${ratio.toFixed(2)}**`,
          name === 'idle' || name === 'control' ? '' : ratio < 2 ? '< 2' : '< 2 (missed)',
          of('p99'),
          of('middle'),
          of('rate'),
          others <= allowed ? 'yes' : `no: other processes used ${others.toFixed(2)} core`,
        ]
      }),
  )
}

function reportCalls(samples) {
  const sent = Object.entries(samples).flatMap(([kind, taken]) =>
    taken.flatMap(({ calls }) => calls.map((call) => ({ kind, ...call }))),
  )
  const inputs = new Set(sent.map(({ kind, what }) => `${what} (${kind})`))
  printTable(
    ['', 'calls', 'response', 'median ms', 'longest ms'],
    [...inputs].map((input) => {
      const calls = sent.filter(({ kind, what }) => `${what} (${kind})` === input)
      const times = calls.map(({ ms = Number.NaN }) => ms)
      const endings = [...new Set(calls.map(({ how }) => how))].join(', ')
      return [input, calls.length, endings, median(times).toFixed(0), Math.max(...times).toFixed(0)]
    }),
  )
  const wrong = sent.filter(({ how }) => !/^4\d\d \D/.test(how))
  if (wrong.length > 0) print(`WARNING: ${wrong.length} calls did not end with a typed 4xx error.\n`)
}
