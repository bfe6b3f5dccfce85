// The measures of the engine benchmark. Each measure calls one server and returns numbers for its rows. A row
// may have a target: for the ratio of ours to theirs (`atLeast`, `atMost`), or for our own number
// (`oursAtMost`).
import { statSync } from 'node:fs'
import { ask, prompt } from './ask.mjs'
import { median } from './measure.mjs'
import { cpuSeconds, memoryBytes, trees } from './processes.mjs'

const shortPrompt = () => prompt(8)
/** Lengths of prompts, in tokens. */
const promptLengths = [100, 500, 1_500]
/** Tokens per answer, by the number of parallel answers. Other numbers of answers take those of the next lower one. */
const streamTokens = { 1: 160, 2: 48, 4: 24, 8: 24, 16: 12 }
const streamCounts = Object.keys(streamTokens).map(Number)

/** Below 64 MiB, the work around a token costs more than the token. */
export const isTinyModel = (file) => statSync(file).size < 2 ** 26

/**
 * @param how `isTiny`: only overhead is measured. Samples are longer, because parallel answers hardly
 * overlap. `wordsFor`: the number of words for a number of prompt tokens. `slots`: the number of parallel
 * answers. `counts`: numbers of streams. `lengths`: lengths of prompts, in tokens.
 */
export const measures = ({ counts = streamCounts, lengths = promptLengths, ...rest }) =>
  measuresOf({ ...rest, counts, lengths, longest: lengths.at(-1) })

const measuresOf = (how) => ({
  short: firstTokens(how),
  ...Object.fromEntries(how.counts.map((count) => [`streams${count}`, streams(count, how)])),
  prompts: prompts(how),
  fair: fairness(how),
  calls: calls(how),
})

const firstTokens = ({ isTiny }) => ({
  rows: { first: { label: 'first token of a short prompt, ms', atMost: isTiny ? 1.75 : 1.15 } },
  run: async (side) => {
    const times = []
    for (let time = 0; time < scaled(5, isTiny); time++)
      times.push((await ask(side, { prompt: shortPrompt(), tokens: 2 })).first)
    return { first: median(times) }
  },
})

function streams(count, { isTiny, slots }) {
  const label = (what) => `${count} ${count === 1 ? 'stream' : 'streams'}, ${what}`
  const known = streamCounts.findLast((known) => known <= count)
  const tokens = scaled(streamTokens[known], isTiny)
  const target = count === 1 ? 0.95 : 0.97
  return {
    rows: {
      ...(!isTiny &&
        count <= slots && { rate: { label: label('tokens/s while all decode'), atLeast: target } }),
      all: {
        label: label('tokens/s including prompts'),
        ...(!isTiny && count > 1 && count <= slots && { atLeast: target }),
      },
      ...((count === 1 || count === 4) && {
        gap: { label: label('gap between tokens, median, ms') },
        longGap: { label: label('gap between tokens, p99, ms') },
      }),
      ...(count === 8 && {
        cpu: { label: label('CPU seconds per 1,000 tokens'), ...(isTiny && { atMost: 1.25 }) },
      }),
    },
    run: async (side) => {
      const cpuBefore = usedBy(side, cpuSeconds)
      const startedAt = performance.now()
      const answers = await allOf(
        Array.from({ length: count }, () => ask(side, { prompt: shortPrompt(), tokens })),
      )
      const seconds = (performance.now() - startedAt) / 1_000
      const { rate, gaps } = whileAllDecode(answers.map(({ times }) => times))
      return {
        rate,
        all: (count * tokens) / seconds,
        gap: median(gaps),
        longGap: percentile(gaps, 0.99),
        cpu: (usedBy(side, cpuSeconds) - cpuBefore) / ((count * tokens) / 1_000),
      }
    },
  }
}

const prompts = ({ isTiny, wordsFor, lengths, longest }) => ({
  rows: {
    ...toRows(lengths, (length) => ({
      [`first${length}`]: { label: `first token of a prompt of ${length} tokens, ms` },
    })),
    ...toRows(
      lengths.filter((length) => length >= 500),
      (length) => ({
        [`prefill${length}`]: {
          label: `prefill of ${length} tokens, tokens/s`,
          ...(!isTiny && { atLeast: 0.95 }),
        },
      }),
    ),
    again: {
      label: `prompt of ${longest} tokens again, % of the first time`,
      ...(!isTiny && { oursAtMost: 2 }),
    },
    seeded: {
      label: `prompt of ${longest} tokens again, with a seed, % of the first time`,
      ...(!isTiny && { oursAtMost: 8 }),
    },
    other: { label: `prompt of ${longest} tokens with another end, % of the first time` },
  },
  run: async (side) => {
    const numbers = {}
    let text = ''
    let cold = 0
    for (const length of lengths) {
      text = prompt(wordsFor(length))
      const { first, promptTokens } = await ask(side, { prompt: text, tokens: 2 })
      cold = first
      numbers[`first${length}`] = first
      numbers[`prefill${length}`] = promptTokens / (first / 1_000)
    }
    const share = async (question) => ((await ask(side, { tokens: 2, ...question })).first / cold) * 100
    return {
      ...numbers,
      again: await share({ prompt: text }),
      seeded: await share({ prompt: text, seed: 7 }),
      other: await share({ prompt: `${text} and then?` }),
    }
  },
})

const fairness = ({ isTiny, wordsFor, longest }) => ({
  rows: {
    gap: {
      label: `longest gap of a stream during another prompt of ${longest} tokens, ms`,
      ...(!isTiny && { atMost: 0.12 }),
    },
    first: { label: 'first token of the other prompt, ms', ...(!isTiny && { atMost: 1.15 }) },
  },
  run: async (side) => {
    let sentAt = 0
    let start
    const started = new Promise((resolve) => {
      start = resolve
    })
    const onToken = (count) => {
      if (count === 10) start()
    }
    const stream = ask(side, { prompt: shortPrompt(), tokens: scaled(80, isTiny), onToken }).finally(start)
    const other = started.then(() => {
      sentAt = performance.now()
      return ask(side, { prompt: prompt(wordsFor(longest)), tokens: 4 })
    })
    const [{ times }, { first }] = await allOf([stream, other])
    const during = gapsOf(times).filter(
      (_, index) => times[index + 1] > sentAt && times[index] < sentAt + first,
    )
    return { gap: Math.max(...during), first }
  },
})

const calls = ({ isTiny }) => ({
  rows: {
    each: { label: '16 concurrent short calls, ms per call' },
    delay: { label: 'event loop delay during short calls, p99, ms', oursAtMost: 20 },
    memory: { label: 'memory of all processes, MB' },
  },
  run: async (side) => {
    const count = scaled(32, isTiny)
    let remaining = count
    const caller = async () => {
      while (remaining-- > 0) await ask(side, { prompt: shortPrompt(), tokens: 4 })
    }
    await side.probe?.('watch')
    const startedAt = performance.now()
    await allOf(Array.from({ length: 16 }, caller))
    return {
      each: (performance.now() - startedAt) / count,
      delay: (await side.probe?.('delay'))?.p99,
      memory: usedBy(side, memoryBytes) / 1e6,
    }
  },
})

/** Waits for all promises even if one fails, so that none of them runs during the next measure. */
async function allOf(promises) {
  await Promise.allSettled(promises)
  return Promise.all(promises)
}

/** A tiny model would finish before anything can be measured. */
const scaled = (count, isTiny) => (isTiny ? 8 * count : count)

const toRows = (items, toRow) => Object.assign({}, ...items.map(toRow))

/** NaN if the processes are not known. */
const usedBy = ({ roots }, measure) => (roots ? measure(trees(roots)) : Number.NaN)

/** Uses the time from the start of the last answer to the end of the first one. */
export function whileAllDecode(all) {
  const from = Math.max(...all.map((times) => times[0]))
  const to = Math.min(...all.map((times) => times.at(-1)))
  const gaps = all.flatMap((times) => gapsOf(times.filter((time) => time >= from && time <= to)))
  return { rate: gaps.length / ((to - from) / 1_000), gaps }
}

const gapsOf = (times) => times.slice(1).map((time, index) => time - times[index])

export const percentile = (values, share) =>
  values.toSorted((a, b) => a - b)[Math.ceil(share * values.length) - 1] ?? Number.NaN
