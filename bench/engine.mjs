// The local engine beside another server of the OpenAI API that has the same model loaded: speed, and fairness.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { describeMachine, median, printTable, quartiles, say } from './support/measure.mjs'

const { values: options } = parseArgs({
  options: {
    against: { type: 'string' },
    model: { type: 'string' },
    threads: { type: 'string', default: '1' },
    parallel: { type: 'string', default: '8' },
    context: { type: 'string', default: '2048' },
    rounds: { type: 'string', default: '7' },
    /** Tokens that answers are made of: with random weights a model may stop early. */
    words: { type: 'string', default: '300' },
    only: { type: 'string', default: 'short,streams,prompt,fair' },
  },
})
if (!options.against || !options.model)
  throw new Error(
    'Say --against http://127.0.0.1:8080 and --model file.gguf, which that server has loaded, too.',
  )

const serve = fileURLToPath(new URL('../packages/cli/bin/modelmount.js', import.meta.url))
const bias = Object.fromEntries(
  Array.from({ length: 32 }, (_, index) => [Number(options.words) + index, 100]),
)
const only = options.only.split(',')

const ours = await startOurs()
const sides = [
  { label: 'ours', url: ours.url },
  { label: 'theirs', url: options.against.replace(/\/$/, '') },
  { label: 'ours once more (control)', url: ours.url },
]
const results = new Map()

await describeMachine()
try {
  for (const { url } of sides) await ask(url, { prompt: short(), tokens: 8 })
  for (let round = 0; round < Number(options.rounds); round++) {
    for (const [what, measure] of Object.entries(measures())) {
      for (let turn = 0; turn < sides.length; turn++) {
        const { label, url } = sides[(round + turn) % sides.length]
        for (const [name, value] of Object.entries(await measure(url))) note(`${what}${name}`, label, value)
      }
    }
    say(`round ${round + 1} of ${options.rounds}`)
  }
} finally {
  ours.stop()
}
report()

function measures() {
  const all = {
    short: {
      'first token of a short prompt, ms': async (url) => {
        const times = []
        for (let time = 0; time < 3; time++)
          times.push((await ask(url, { prompt: short(), tokens: 2 })).first)
        return { '': median(times) }
      },
    },
    streams: Object.fromEntries(
      [1, 2, 4, 8].map((count) => [
        `${count} streams, `,
        async (url) => {
          const tokens = count < 4 ? 40 : 24
          const startedAt = performance.now()
          const answers = await Promise.all(
            Array.from({ length: count }, () => ask(url, { prompt: short(), tokens })),
          )
          const seconds = (performance.now() - startedAt) / 1_000
          const rates = answers.map(({ times }) => ((times.length - 1) * 1_000) / (times.at(-1) - times[0]))
          return {
            'tokens/s while they speak': rates.reduce((sum, rate) => sum + rate, 0),
            'tokens/s with their prompts': (count * tokens) / seconds,
          }
        },
      ]),
    ),
    prompt: {
      'a long prompt, ': async (url) => {
        const prompt = long()
        const { first: cold } = await ask(url, { prompt, tokens: 2 })
        const { first: warm } = await ask(url, { prompt, tokens: 2 })
        return { 'first token, ms': cold, 'again, ms': warm }
      },
    },
    fair: {
      'a long prompt beside a stream, ': async (url) => {
        let other
        let cameAt = 0
        const onToken = (count) => {
          if (count < 10 || other) return
          cameAt = performance.now()
          other = ask(url, { prompt: long(), tokens: 4 })
        }
        const { times } = await ask(url, { prompt: short(), tokens: 80, onToken })
        const { first, firstAt } = await other
        const gaps = times.slice(1).map((time, index) => [time, time - times[index]])
        const during = gaps.filter(([time]) => time > cameAt && time < firstAt + 500).map(([, gap]) => gap)
        return { 'longest gap, ms': Math.max(...during), 'its first token, ms': first }
      },
    },
  }
  return Object.assign({}, ...only.map((name) => all[name]))
}

/** One streamed answer: when each of its pieces came. */
async function ask(url, { prompt, tokens, onToken = () => {} }) {
  const startedAt = performance.now()
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model: ours.model,
      messages: [{ role: 'user', content: prompt }],
      max_tokens: tokens,
      stream: true,
      temperature: 0.8,
      top_k: 40,
      top_p: 0.95,
      min_p: 0.05,
      logit_bias: bias,
    }),
  })
  if (!response.ok) throw new Error(`${url} says ${response.status}: ${await response.text()}`)
  const times = []
  let rest = ''
  let ended = false
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    const frames = (rest + chunk).split('\n\n')
    rest = frames.pop()
    for (const frame of frames) {
      ended ||= frame.includes('[DONE]')
      if (!frame.includes('"content":"') || frame.includes('"content":""')) continue
      times.push(performance.now())
      onToken(times.length)
    }
  }
  if (!ended || times.length === 0) throw new Error(`${url} did not finish its answer.`)
  return { first: times[0] - startedAt, firstAt: times[0], times }
}

function note(what, label, value) {
  const row = results.get(what) ?? {}
  row[label] = [...(row[label] ?? []), value]
  results.set(what, row)
}

function report() {
  say(`\n${options.model.split('/').at(-1)}, ${options.threads} threads, ${options.parallel} slots\n`)
  const rows = [...results].map(([what, row]) => {
    const [mine, theirs, control] = sides.map(({ label }) => row[label])
    const against = mine.map((value, round) => value / theirs[round])
    const [low, high] = quartiles(against)
    return [
      what,
      median(mine).toFixed(1),
      median(theirs).toFixed(1),
      (median(mine) / median(theirs)).toFixed(3),
      `${low.toFixed(2)} – ${high.toFixed(2)}`,
      (median(control) / median(mine)).toFixed(3),
    ]
  })
  printTable(['', 'ours', 'theirs', 'ours / theirs', 'half of the rounds', 'control'], rows)
}

/** In processes of its own, as users run it. */
async function startOurs() {
  const flags = { port: '0', model: options.model, threads: options.threads, parallel: options.parallel }
  const args = Object.entries({ ...flags, context: options.context }).flatMap(([name, value]) => [
    `--${name}`,
    value,
  ])
  const child = spawn(process.execPath, [serve, 'serve', ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  for await (const line of createInterface(child.stdout)) {
    const [, url] = /Listening on (\S+)/.exec(line) ?? []
    if (!url) continue
    const model = options.model
      .split('/')
      .at(-1)
      .replace(/\.gguf$/, '')
    return { url, model, stop: () => child.kill('SIGTERM') }
  }
  throw new Error('Our own server did not start.')
}

/** Never the same twice: no part of it has been read before. */
function short() {
  return `${Math.random().toString(36).slice(2, 8)} ${words(8)}`
}
function long() {
  return `${Math.random().toString(36).slice(2, 8)} ${words(740)}`
}
function words(count) {
  const known = 'river stone cloud table window engine number paper green yellow garden bridge market'.split(
    ' ',
  )
  return Array.from(
    { length: count },
    () => known[Math.floor(Math.random() * known.length)] + Math.floor(Math.random() * 10),
  ).join(' ')
}
