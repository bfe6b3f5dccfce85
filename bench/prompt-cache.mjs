// Prompt cache: compares the time to the first token with and without the cache, and counts hits with many
// conversations.
import { existsSync, readdirSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { createLlm } from '@modelmount/core'
import { IdleGuard } from './support/idle-guard.mjs'
import {
  describeMachine,
  median,
  percent,
  print,
  printProgress,
  printTable,
  quartiles,
} from './support/measure.mjs'

const { values: options } = parseArgs({
  options: {
    model: { type: 'string' },
    threads: { type: 'string', default: '1' },
    parallel: { type: 'string', default: '4' },
    /** Tokens of the system text, which is cached. */
    tokens: { type: 'string', default: '2000' },
    /** Tokens of the question after the system text. */
    question: { type: 'string', default: '30' },
    rounds: { type: 'string', default: '5' },
    conversations: { type: 'string', default: '40' },
    budget: { type: 'string', default: '1.5gb' },
    /** `on` or `off`. @default the engine's default */
    'flash-attention': { type: 'string' },
    /** `warm` or `conversations`. @default both */
    only: { type: 'string' },
  },
})
if (!options.model) throw new Error('Missing option: --model file.gguf')
const model = basename(options.model, '.gguf')
const attention = options['flash-attention']
const [tokens, question, parallel] = [options.tokens, options.question, options.parallel].map(Number)
/** Tokens of each answer that is compared. */
const answerTokens = 16

const vocabulary =
  'river stone cloud house green window paper water light story garden winter music letter road bridge silver morning animal number'.split(
    ' ',
  )

const llm = await createLlm({
  models: dirname(options.model),
  local: {
    contextSize: tokens + question + 128,
    parallel,
    threads: Number(options.threads),
    promptCache: options.budget,
    flashAttention: attention && attention === 'on',
    keepAlive: 'forever',
  },
})
try {
  await llm.load(model)
  const guard = new IdleGuard([llm.loaded()[0].processId])
  const words = await wordsFor()
  print(
    `## Prompt cache: ${basename(options.model)}, ${options.threads} thread${options.threads === '1' ? '' : 's'}${attention ? `, flash attention ${attention}` : ''}\n`,
  )
  await describeMachine()
  if (!guard.isOn) print('WARNING: the idle guard is off.')
  print('')
  if (options.only !== 'conversations') await compareWarm(words, guard)
  if (options.only !== 'warm') await compareConversations(words)
} finally {
  await llm.close()
}

/** Times the first token: cold, cached in a slot, with a seed, cached in a file, and for other tenants. */
async function compareWarm(words, guard) {
  const names = [
    'cold',
    'warm',
    'warm, with a seed',
    'warm, from a file',
    'another tenant',
    'one more tenant (control)',
  ]
  const samples = []
  for (let round = 1; round <= Number(options.rounds); round++) {
    const { value } = await guard.take(() => takeRound(words))
    samples.push(value)
    printProgress(`round ${round} of ${options.rounds}, ${guard.retakes} samples repeated so far`)
  }
  const { reads, prefix } = samples[0]
  print(`### Cached prefix of ${prefix} tokens, question of ${question} tokens, ${samples.length} rounds\n`)
  const rows = names.map((name) => {
    const ratios = samples.map(({ times }) => times[name] / times.cold)
    const shown = (ratio) => `${(100 * ratio).toFixed(1)} %`
    return [
      name,
      `${reads[name]}`,
      `${median(samples.map(({ times }) => times[name])).toFixed(0)} ms`,
      `**${shown(median(ratios))}**`,
      quartiles(ratios).map(shown).join(' – '),
    ]
  })
  printTable(['first token', 'tokens read from the cache', 'time', 'relative to cold', 'quartiles'], rows)
}

/** Measures one round with a new text. */
async function takeRound(words) {
  const text = textOf(words)
  const times = {}
  const reads = {}
  const measure = async (name, tenant, more) => {
    const answer = await ask(text, { tenant, limit: 1, ...more })
    times[name] = answer.ms
    reads[name] = answer.usage.cacheReadTokens
    return answer
  }
  const others = () =>
    Promise.all(Array.from({ length: parallel }, () => ask('Hello', { tenant: unique(), limit: 2 })))
  const [ann, ben, eve] = [unique(), unique(), unique()]
  const cold = await measure('cold', ann)
  await measure('warm', ann)
  await measure('warm, with a seed', ann, { seed: 1 })
  await others()
  await measure('warm, from a file', ann)
  await measure('another tenant', ben)
  await measure('one more tenant (control)', eve)
  return { times, reads, prefix: cold.usage.cacheWriteTokens['1h'] }
}

/**
 * Sends all conversations in turn: cold, again, and again with a seed. Then a new tenant sends each of them
 * for comparison.
 */
async function compareConversations(words) {
  const count = Number(options.conversations)
  const all = Array.from({ length: count }, (_, index) => ({
    text: textOf(words),
    question: questionOf(),
    seed: index,
  }))
  const around = async (name, tenantOf, withSeed) => {
    const answers = []
    for (const [at, { text, question, seed }] of all.entries()) {
      const tenant = tenantOf(at)
      answers.push(await ask(text, { tenant, question, limit: answerTokens, ...(withSeed && { seed }) }))
      printProgress(`${name}: ${at + 1} of ${count}`)
    }
    return answers
  }
  const app = unique()
  const first = await around('first', () => app)
  const greedy = await around('again', () => app)
  const seeded = await around('again, with a seed', () => app, true)
  const { bytes, files } = cachedStates()
  const cold = await around('cold, with a seed', unique, true)

  const [{ usage }] = first
  const prefix = usage.cacheWriteTokens['1h']
  const warm = [...greedy, ...seeded]
  const colds = [...first, ...cold]
  const isHit = (answer, at) =>
    answer.usage.cacheReadTokens === first[at % count].usage.cacheWriteTokens['1h']
  const hits = warm.flatMap((answer, at) => (isHit(answer, at) ? [answer.ms / colds[at].ms] : []))
  const isSame = (one, other) => one.tokens.join() === other.tokens.join()
  const same = (some, others) => some.filter((one, at) => isSame(one, others[at])).length
  print(`### ${count} conversations in ${parallel} slots, each with a prefix of ${prefix} tokens\n`)
  printTable(
    ['', ''],
    [
      ['hits', `**${percent(hits.length / warm.length)}** of ${warm.length}`],
      [
        'first token of a hit, relative to cold',
        `**${percent(median(hits))}**, quartiles ${quartiles(hits).map(percent).join(' – ')}, at most ${percent(Math.max(...hits))}`,
      ],
      ['first token, cold', `${median(colds.map(({ ms }) => ms)).toFixed(0)} ms`],
      ['answers equal to cold ones, temperature 0', `**${same(greedy, first)}** of ${count}`],
      ['answers equal to cold ones, temperature 1 with a seed', `**${same(seeded, cold)}** of ${count}`],
      [
        'cached before the last cold calls',
        `${files} states, ${(bytes / 1e9).toFixed(2)} GB of ${options.budget}`,
      ],
    ],
  )
}

async function ask(text, { tenant, question = questionOf(), limit, seed }) {
  const messages = [
    { role: 'system', content: [{ type: 'text', text, cache: '1h' }] },
    { role: 'user', content: [{ type: 'text', text: question }] },
  ]
  const sampling = seed === undefined ? { temperature: 0 } : { temperature: 1, topK: 0, topP: 1, seed }
  const startedAt = performance.now()
  const generation = await llm.generate(
    {
      model,
      input: { kind: 'chat', messages },
      maxTokens: limit,
      returnTokens: true,
      // A model with random weights may stop early.
      sampling: { ...sampling, ignoreEos: true },
    },
    { signal: new AbortController().signal, caller: { id: tenant } },
  )
  for await (const event of generation) {
    if (event.type === 'end') {
      const { usage, timings } = event
      // Text may arrive later than its token, because a token can end within a character.
      const ms = performance.now() - startedAt - (limit === 1 ? 0 : timings.generateMs)
      return { ms, usage, tokens: event.tokens.slice(usage.inputTokens) }
    }
  }
  throw new Error('The answer did not end.')
}

/** Returns how many words a system text of `--tokens` tokens needs. */
async function wordsFor() {
  const count = async (words) => {
    const messages = [{ role: 'system', content: [{ type: 'text', text: textOf(words) }] }]
    const call = { signal: new AbortController().signal, tenant: '', background: false }
    return llm.countTokens({ model, input: { kind: 'chat', messages } }, call)
  }
  const [few, many] = [await count(100), await count(1_100)]
  const perWord = (many - few) / 1_000
  return Math.round((tokens - few) / perWord) + 100
}

/** A text with a unique beginning. */
function textOf(words) {
  return `${unique()} ${Array.from({ length: words }, (_, at) => vocabulary[(at * at + at) % vocabulary.length]).join(' ')}`
}

function questionOf() {
  return Array.from(
    { length: question - 4 },
    () => vocabulary[Math.floor(Math.random() * vocabulary.length)],
  ).join(' ')
}

function unique() {
  return String(Math.random()).slice(2, 10)
}

/** Number and bytes of the cached states on the RAM disk. 0 without a RAM disk. */
function cachedStates() {
  const ramDisk = '/dev/shm'
  const [{ processId }] = llm.loaded()
  const names = existsSync(ramDisk) ? readdirSync(ramDisk) : []
  const folder = names.find((name) => name.startsWith(`modelmount-${processId}-`))
  const files = folder ? readdirSync(join(ramDisk, folder)) : []
  const bytes = files.reduce((sum, name) => sum + statSync(join(ramDisk, folder, name)).size, 0)
  return { bytes, files: files.length }
}
