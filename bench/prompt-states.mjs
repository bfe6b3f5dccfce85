// Prompt states: the longest gap of four streams while the KV states of eight prompts are saved, compared with the
// same calls without states to save.
import { basename, dirname } from 'node:path'
import { parseArgs } from 'node:util'
import { createLlm } from '@modelmount/core'
import { IdleGuard } from './support/idle-guard.mjs'
import { describeMachine, median, print, printProgress, printTable, quartiles } from './support/measure.mjs'

const { values: options } = parseArgs({
  options: {
    model: { type: 'string' },
    threads: { type: 'string', default: '2' },
    /** Number of streams. */
    streams: { type: 'string', default: '4' },
    /** Number of states. */
    states: { type: 'string', default: '8' },
    /** Tokens of each state. */
    tokens: { type: 'string', default: '3000' },
    /** How many of these tokens each prompt has for itself. The others are read once for all prompts. */
    own: { type: 'string', default: '300' },
    rounds: { type: 'string', default: '5' },
  },
})
if (!options.model) throw new Error('Missing option: --model file.gguf')
const model = basename(options.model, '.gguf')
const [streams, states, tokens, own, rounds] = ['streams', 'states', 'tokens', 'own', 'rounds'].map((name) =>
  Number(options[name]),
)
const streamTokens = tokens + 1_000
/** How long the streams run before and after the calls, in ms. */
const marginMs = 500
const known = 'river stone cloud table window engine number paper green yellow garden bridge market'.split(
  ' ',
)
const signal = new AbortController().signal

const llm = await createLlm({
  models: dirname(options.model),
  local: {
    contextSize: streamTokens + 256,
    parallel: streams + states,
    threads: Number(options.threads),
    promptCache: '2gb',
    keepAlive: 'forever',
  },
})
try {
  await llm.load(model)
  const guard = new IdleGuard([llm.loaded()[0].processId])
  print(`## Prompt states: ${basename(options.model)}, ${options.threads} threads\n`)
  await describeMachine()
  if (!guard.isOn) print('WARNING: the idle guard is off.')
  const perWord = ((await count(textOf(1_000))) - (await count(textOf(0)))) / 1_000
  const shared = textOf(Math.round((tokens - own) / perWord))
  await call({ shared, text: 'Hello', tenant: 'app', maxTokens: 1 })
  const samples = []
  for (let round = 1; round <= rounds; round++) {
    const { value } = await guard.take(() => takeRound(shared, Math.round(own / perWord)))
    samples.push(value)
    printProgress(`round ${round} of ${rounds}, ${guard.retakes} samples repeated so far`)
  }
  report(samples)
} finally {
  await llm.close()
}

function report(samples) {
  const { stateTokens } = samples[0]
  print(
    `\n${streams} streams, ${states} states of ${stateTokens.join(', ')} tokens, ${samples.length} rounds. Ratios are relative to the same calls without states.\n`,
  )
  const rows = Object.keys(samples[0].gaps).map((name) => {
    const ratios = samples.map(({ gaps }) => gaps[name].longest / gaps.without.longest)
    const typical = samples.map(({ gaps }) => gaps[name].median)
    return [
      name,
      `${median(samples.map(({ gaps }) => gaps[name].longest)).toFixed(0)} ms`,
      `**${median(ratios).toFixed(2)}**`,
      quartiles(ratios)
        .map((ratio) => ratio.toFixed(2))
        .join(' – '),
      `${median(typical).toFixed(0)} ms`,
    ]
  })
  printTable(['', 'longest gap', 'ratio', 'quartiles', 'median gap'], rows)
}

/**
 * Fills slots with long prompts, whose states are not saved yet. Then short prompts of other tenants take these
 * slots beside streams, so that the states are saved. Further short prompts take slots that have nothing to save.
 */
async function takeRound(shared, ownWords) {
  const fill = await Promise.all(
    Array.from({ length: states }, () =>
      call({ shared, text: `${unique()} ${textOf(ownWords)}`, tenant: 'app', maxTokens: 1 }),
    ),
  )
  const gaps = await besideStreams(async (measure) => {
    const askShort = () =>
      Promise.all(
        Array.from({ length: states }, () => call({ text: unique(), tenant: unique(), maxTokens: 8 })),
      )
    return {
      'with states to save': await measure(askShort),
      without: await measure(askShort),
      'without (control)': await measure(askShort),
    }
  })
  const sizes = fill.map(({ inputTokens }) => inputTokens)
  return { gaps, stateTokens: [...new Set([Math.min(...sizes), Math.max(...sizes)])] }
}

/** Runs streams during the callback, whose argument returns the gaps of all streams during calls. */
async function besideStreams(callback) {
  const leaving = new AbortController()
  const times = Array.from({ length: streams }, () => [])
  const ends = times.map((at, index) =>
    call({
      text: `${unique()} ${index}`,
      tenant: 'streams',
      maxTokens: streamTokens,
      signal: leaving.signal,
      onToken: () => at.push(performance.now()),
    }),
  )
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
  while (times.some(({ length }) => length < 4)) await pause(10)
  const result = await callback(async (calls) => {
    await pause(marginMs)
    const from = performance.now()
    await calls()
    await pause(marginMs)
    const gaps = times.flatMap((at) =>
      at.flatMap((time, index) => (time >= from && index > 0 ? [time - at[index - 1]] : [])),
    )
    return { longest: Math.max(...gaps), median: median(gaps) }
  })
  if (times.some(({ length }) => length === streamTokens)) throw new Error('A stream ended early.')
  leaving.abort()
  await Promise.allSettled(ends)
  return result
}

async function call({ shared, text, tenant, maxTokens, onToken, signal: left = signal }) {
  const system = shared && [{ role: 'system', content: [{ type: 'text', text: shared, cache: '1h' }] }]
  const messages = [...(system ?? []), { role: 'user', content: [{ type: 'text', text }] }]
  const generation = await llm.generate(
    {
      model,
      input: { kind: 'chat', messages },
      maxTokens,
      // A model with random weights may stop early.
      sampling: { temperature: 1, ignoreEos: true },
    },
    { signal: left, caller: { id: tenant } },
  )
  for await (const event of generation) {
    if (event.type === 'text') onToken?.()
    if (event.type === 'end') return event.usage
  }
  return undefined
}

async function count(text) {
  const messages = [{ role: 'user', content: [{ type: 'text', text }] }]
  return llm.countTokens(
    { model, input: { kind: 'chat', messages } },
    { signal, tenant: '', background: false },
  )
}

function textOf(words) {
  return Array.from({ length: words }, (_, index) => known[(index * index + index) % known.length]).join(' ')
}

function unique() {
  return String(Math.random()).slice(2, 10)
}
