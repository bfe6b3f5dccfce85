// Batches: an interactive stream beside a batch, the throughput of a batch, and a system prompt that its requests share.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { createLlm } from '@modelmount/core'
import { IdleGuard } from './support/idle-guard.mjs'
import { describeMachine, median, print, printProgress, printTable, quartiles } from './support/measure.mjs'

const { values: options } = parseArgs({
  options: {
    model: { type: 'string' },
    threads: { type: 'string', default: '2' },
    /** Slots of the model. */
    parallel: { type: 'string', default: '4' },
    /** Requests of the batch beside the stream. */
    items: { type: 'string', default: '200' },
    /** Requests of the batch whose throughput is measured. */
    measured: { type: 'string', default: '32' },
    /** Requests that share a system prompt, and its tokens. */
    sharing: { type: 'string', default: '500' },
    shared: { type: 'string', default: '1500' },
    /** Tokens that each of these requests has for itself. */
    own: { type: 'string', default: '120' },
    rounds: { type: 'string', default: '7' },
    /** `beside`, `throughput` or `prefix`. @default all */
    only: { type: 'string' },
  },
})
if (!options.model) throw new Error('Missing option: --model file.gguf')
const model = basename(options.model, '.gguf')
const [parallel, items, measured, sharing, shared, own, rounds] = [
  ...['parallel', 'items', 'measured', 'sharing', 'shared', 'own', 'rounds'],
].map((name) => Number(options[name]))
const words = 'river stone cloud table window engine number paper green yellow garden bridge market'.split(
  ' ',
)
const promptTokens = 100
const answerTokens = 48
const streamTokens = 96
const chunkTokens = 64

const folder = mkdtempSync(join(tmpdir(), 'batches-'))
const llm = await createLlm({
  models: dirname(options.model),
  database: join(folder, 'modelmount.db'),
  local: { contextSize: 2_048, parallel, threads: Number(options.threads), keepAlive: 'forever' },
})
try {
  await llm.load(model)
  const guard = new IdleGuard([llm.loaded()[0].processId])
  print(`## Batches: ${basename(options.model)}, ${options.threads} threads, ${parallel} slots\n`)
  await describeMachine()
  if (!guard.isOn) print('WARNING: the idle guard is off.')
  const wants = (name) => options.only === undefined || options.only === name
  if (wants('beside')) await measureBeside(guard)
  if (wants('throughput')) await measureThroughput(guard)
  if (wants('prefix')) await measurePrefix()
} finally {
  await llm.close()
  rmSync(folder, { recursive: true })
}

/** An interactive stream and short prompts, alone and while a batch runs. */
async function measureBeside(guard) {
  const samples = []
  for (let round = 1; round <= rounds; round++) {
    const alone = await take(guard, measureInteractive)
    const beside = await take(guard, async () => {
      const batch = await llm.batches.create(requests(items), { format: 'openai' })
      await until(async () => (await llm.batches.get(batch.id)).counts.succeeded > 0)
      const result = await measureInteractive()
      const { counts } = await llm.batches.get(batch.id)
      if (counts.processing === 0) throw new Error('The batch ended before the measurement.')
      await llm.batches.cancel(batch.id)
      await ended(batch)
      return result
    })
    const control = await take(guard, measureInteractive)
    samples.push({ alone, beside, control })
    printProgress(`beside: round ${round} of ${rounds}, ${guard.retakes} samples repeated so far`)
  }
  const chunkMs = median(samples.map(({ alone }) => alone.chunkMs))
  print(
    `\nA stream of ${streamTokens} tokens and short prompts, alone and beside a batch of ${items} requests, ${rounds} rounds. ` +
      `A chunk of ${chunkTokens} prompt tokens takes ${chunkMs.toFixed(0)} ms.\n`,
  )
  const row = (title, name) => {
    const ratios = samples.map(({ alone, beside }) => beside[name] / alone[name])
    return [
      title,
      `${median(samples.map(({ alone }) => alone[name])).toFixed(1)} ms`,
      `${median(samples.map(({ beside }) => beside[name])).toFixed(1)} ms`,
      `**${median(ratios).toFixed(3)}**`,
      quartiles(ratios)
        .map((ratio) => ratio.toFixed(2))
        .join(' – '),
      median(samples.map(({ alone, control }) => control[name] / alone[name])).toFixed(3),
    ]
  }
  printTable(
    ['', 'alone', 'beside the batch', 'beside / alone', 'quartiles', 'control'],
    [row('time between tokens, median', 'gapMs'), row('first token of a short prompt, median', 'firstMs')],
  )
}

async function measureInteractive() {
  const times = []
  await ask(promptTokens, streamTokens, () => times.push(performance.now()))
  const gaps = times.slice(1).map((time, index) => time - times[index])
  const firsts = []
  for (let probe = 0; probe < 8; probe++) {
    // Meanwhile, the batch continues.
    await sleep(300)
    const from = performance.now()
    const at = []
    await ask(8, 2, () => at.push(performance.now()))
    firsts.push(at[0] - from)
  }
  const from = performance.now()
  await ask(8 * chunkTokens, 1)
  return { gapMs: median(gaps), firstMs: median(firsts), chunkMs: (performance.now() - from) / 8 }
}

/** The same requests as a batch, and as calls with the best number at once. */
async function measureThroughput(guard) {
  const counts = [parallel, 2 * parallel, 4 * parallel]
  const samples = []
  for (let round = 1; round <= rounds; round++) {
    const batch = await take(guard, runBatch)
    const direct = []
    for (const count of counts) direct.push(await take(guard, () => runDirectly(count)))
    const again = await take(guard, runBatch)
    samples.push({ batch, direct: Math.min(...direct), again })
    printProgress(`throughput: round ${round} of ${rounds}, ${guard.retakes} samples repeated so far`)
  }
  const ratios = samples.map(({ batch, direct }) => direct / batch)
  print(
    `\n${measured} requests of ${promptTokens} and ${answerTokens} tokens, as a batch and as calls with the best of ${counts.join(', ')} at once, ${rounds} rounds.\n`,
  )
  printTable(
    ['', 'batch', 'calls', 'batch / calls', 'quartiles', 'control'],
    [
      [
        'answers per second',
        (measured / median(samples.map(({ batch }) => batch)) / 1e-3).toFixed(2),
        (measured / median(samples.map(({ direct }) => direct)) / 1e-3).toFixed(2),
        `**${median(ratios).toFixed(3)}**`,
        quartiles(ratios)
          .map((ratio) => ratio.toFixed(2))
          .join(' – '),
        median(samples.map(({ batch, again }) => batch / again)).toFixed(3),
      ],
    ],
  )
}

async function runBatch() {
  const bodies = requests(measured)
  const from = performance.now()
  const batch = await ended(await llm.batches.create(bodies, { format: 'openai' }))
  if (batch.counts.succeeded !== measured) throw new Error('A request of the batch has failed.')
  // `watch` looks twice a second, so the end of the batch itself counts.
  return batch.endedAt.getTime() - (performance.timeOrigin + from)
}

async function runDirectly(atOnce) {
  const queue = Array.from({ length: measured }).values()
  const from = performance.now()
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (const _ of queue) await ask(promptTokens, answerTokens)
    }),
  )
  return performance.now() - from
}

/** Prompt tokens that are evaluated for requests with one system prompt. */
async function measurePrefix() {
  const system = textOf(shared)
  const bodies = Array.from({ length: sharing }, (_, index) =>
    requestOf(index, { own, maxTokens: 1, system }),
  )
  const from = performance.now()
  const batch = await ended(await llm.batches.create(bodies, { format: 'openai' }))
  const seconds = (batch.endedAt.getTime() - (performance.timeOrigin + from)) / 1_000
  let total = 0
  let evaluated = 0
  for await (const { line } of llm.batches.results(batch.id)) {
    const { prompt_tokens: tokens, prompt_tokens_details: details } = line.response.body.usage
    total += tokens
    evaluated += tokens - details.cached_tokens
  }
  const systemTokens = await count(system)
  // The system prompt once, and what each request has for itself.
  const least = systemTokens + (total - sharing * systemTokens)
  print(`\n${sharing} requests with a system prompt of ${systemTokens} tokens, in ${seconds.toFixed(0)} s.\n`)
  printTable(
    ['prompt tokens', 'evaluated', 'the system prompt once and all else', 'ratio'],
    [[total, evaluated, least, `**${(evaluated / least).toFixed(3)}**`]],
  )
}

async function take(guard, sample) {
  return (await guard.take(sample)).value
}

async function ended({ id }) {
  let last
  for await (const batch of llm.batches.watch(id)) last = batch
  return last
}

async function until(condition) {
  while (!(await condition())) await sleep(50)
}

function requests(count) {
  return Array.from({ length: count }, (_, index) => requestOf(index))
}

function requestOf(index, { own = promptTokens, maxTokens = answerTokens, system } = {}) {
  const user = { role: 'user', content: `${unique()} ${textOf(own)}` }
  return {
    custom_id: `request-${index}`,
    method: 'POST',
    url: '/v1/chat/completions',
    body: {
      model,
      max_tokens: maxTokens,
      // A model with random weights may stop early.
      ignore_eos: true,
      messages: [...(system === undefined ? [] : [{ role: 'system', content: system }]), user],
    },
  }
}

/** A prompt of about `tokens` tokens, which no earlier call has had. */
async function ask(tokens, maxTokens, onToken) {
  const content = [{ type: 'text', text: `${unique()} ${textOf(tokens)}` }]
  const generation = await llm.generate(
    {
      model,
      input: { kind: 'chat', messages: [{ role: 'user', content }] },
      maxTokens,
      sampling: { ignoreEos: true },
    },
    { signal: new AbortController().signal, caller: { id: 'interactive' } },
  )
  for await (const { type } of generation) if (type === 'text') onToken?.()
}

async function count(text) {
  return (await llm.tokenize({ model, text }, { caller: { id: 'interactive' } })).length
}

function textOf(tokens) {
  return Array.from({ length: tokens }, (_, index) => words[(index * index + index) % words.length]).join(' ')
}

function unique() {
  return String(Math.random()).slice(2, 10)
}
