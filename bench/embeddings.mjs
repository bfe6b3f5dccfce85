// Embeddings: compares several contexts with one, and the local engine with another server that has the same
// model.
import { basename, dirname } from 'node:path'
import { parseArgs } from 'node:util'
import { createLlm } from '@modelmount/core'
import { IdleGuard } from './support/idle-guard.mjs'
import { describeMachine, median, print, printTable, quartiles } from './support/measure.mjs'
import { takeRounds } from './support/rounds.mjs'

const { values: options } = parseArgs({
  options: {
    model: { type: 'string' },
    /**
     * URL of the other server, such as http://127.0.0.1:8080. It must have the same model and number of
     * threads.
     */
    against: { type: 'string' },
    /** Process id of the other server. The idle guard does not count its work as a disturbance. */
    'against-pid': { type: 'string' },
    threads: { type: 'string', default: '2' },
    rounds: { type: 'string', default: '7' },
  },
})
const { model: path, against, threads, rounds } = options
if (!path) throw new Error('Missing option: --model file.gguf, an embedding model')
const model = basename(path, '.gguf')

const textsAtOnce = 64
const lengths = [8, 30, 120]
const vocabulary =
  'river stone cloud house green window paper water light story garden winter music letter road bridge silver morning animal number'.split(
    ' ',
  )

const one = await open(1)
const many = await open(Number(threads))
try {
  const theirs = against && { embed: embedOver(against.replace(/\/$/, '')) }
  const pid = options['against-pid'] && Number(options['against-pid'])
  // Without the process id, the guard would count the other server's work as a disturbance.
  const guard = new IdleGuard(!theirs || pid ? [one.id, many.id, ...(pid ? [pid] : [])] : undefined)

  print(`## ${basename(path)}, ${textsAtOnce} texts per call\n`)
  await describeMachine()
  if (!guard.isOn) print('WARNING: the idle guard is off.')
  print('')
  await compare(
    `${threads} contexts with one thread each, compared with one context`,
    { ours: many, theirs: one, control: many },
    guard,
  )
  if (theirs) {
    await compareVectors(many, theirs)
    await compare(
      `${threads} threads, ours compared with the other server`,
      { ours: many, theirs, control: many },
      guard,
    )
  }
} finally {
  await Promise.all([one.close(), many.close()])
}

/** Loads the model with this number of threads, and one context per thread. */
async function open(threads) {
  const llm = await createLlm({ models: dirname(path), local: { threads, keepAlive: 'forever' } })
  await llm.load(model)
  return {
    id: llm.loaded()[0].processId,
    embed: async (inputs) => (await llm.embed({ model, inputs })).embeddings,
    close: () => llm.close(),
  }
}

function embedOver(url) {
  return async (input) => {
    const response = await fetch(`${url}/v1/embeddings`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model, input }),
    })
    if (!response.ok) throw new Error(`The other server failed: ${await response.text()}`)
    const { data } = await response.json()
    return data.toSorted((a, b) => a.index - b.index).map(({ embedding }) => embedding)
  }
}

/** Prints texts per second, and the ratio of both sides per round. */
async function compare(title, sides, guard) {
  const measures = Object.fromEntries(
    lengths.map((words) => [`${words} words`, { run: (side) => rate(side, words) }]),
  )
  await Promise.all(Object.values(sides).map((side) => side.embed(textsOf(lengths[0]))))
  const samples = await takeRounds(Number(rounds), measures, sides, guard)
  print(`### ${title}\n`)
  const rows = Object.entries(samples).map(([name, taken]) => {
    const ratios = taken.map(({ ours, theirs }) => ours / theirs)
    const controls = taken.map(({ ours, control }) => control / ours)
    const perSecond = (side) => median(taken.map((sample) => sample[side])).toFixed(1)
    return [
      name,
      perSecond('ours'),
      perSecond('theirs'),
      `**${median(ratios).toFixed(2)}**`,
      quartiles(ratios)
        .map((ratio) => ratio.toFixed(2))
        .join(' – '),
      median(controls).toFixed(2),
    ]
  })
  printTable(['texts per second', 'first', 'second', 'ratio', 'quartiles', 'control'], rows)
}

async function rate(side, words) {
  const texts = textsOf(words)
  const startedAt = performance.now()
  await side.embed(texts)
  return texts.length / ((performance.now() - startedAt) / 1_000)
}

async function compareVectors(ours, theirs) {
  for (const words of lengths) {
    const texts = textsOf(words)
    const [own, other] = [await ours.embed(texts), await theirs.embed(texts)]
    const least = Math.min(...own.map((vector, index) => cosine(vector, other[index])))
    print(`Lowest cosine similarity, ${texts.length} texts of ${words} words: ${least.toFixed(6)}`)
  }
  print('')
}

function cosine(a, b) {
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b))
}
function dot(a, b) {
  return a.reduce((sum, value, index) => sum + value * b[index], 0)
}

/** Random texts of common words. Most of the words are one token. */
function textsOf(words) {
  return Array.from({ length: textsAtOnce }, () =>
    Array.from({ length: words }, () => vocabulary[Math.floor(Math.random() * vocabulary.length)]).join(' '),
  )
}
