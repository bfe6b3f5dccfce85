/** Several tenants with one model. Each step of the fake decoder takes 20 ms of a clock that stands still otherwise. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  type FakeDecoder,
  fakeDecoder,
  job,
  prompt,
  type Recorded,
  type Token,
} from '../../../../../../../test/support/fake-decoder.ts'
import { SnapshotStore } from '../kv-cache/snapshots.ts'
import type { GenerationJob, RunOutcome } from '../runner.ts'
import type { BatchEntry } from './decoder.ts'
import { Scheduler } from './scheduler.ts'

const stepMs = 20
/** With a step that is just running. */
const sliceMs = 1_000 + stepMs
/** Prompts that begin with a higher token get no end token. */
const endless = 1_000_000

let folder: string
let now: number

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'slots-'))
  now = 10_000
  vi.spyOn(performance, 'now').mockImplementation(() => now)
})
afterEach(() => {
  vi.restoreAllMocks()
  rmSync(folder, { recursive: true, force: true })
})

interface Answer {
  readonly job: GenerationJob & Recorded
  /** Times of its tokens, in ms. */
  readonly at: number[]
  readonly outcome: Promise<RunOutcome>
  readonly abort: () => void
}

interface World {
  readonly decoder: FakeDecoder
  readonly progress: { steps: number }
  ask(tenant: string, more?: Partial<GenerationJob>): Answer
  /** Runs the callback after the step in which the time is reached. */
  when(ms: number, callback: () => void): void
  /** Ends all answers after this time, and waits for that. */
  runFor(ms: number): Promise<void>
}

type DecoderOptions = NonNullable<Parameters<typeof fakeDecoder>[0]>

interface WorldOptions extends DecoderOptions {
  /** Size limit of saved states, in bytes. Without it, none can be saved. */
  readonly budgetBytes?: number
  readonly msOf?: (entries: readonly BatchEntry[]) => number
}

function createWorld({ budgetBytes, msOf = () => stepMs, ...options }: WorldOptions = {}): World {
  const decoder = fakeDecoder({ chunksAtOnce: 1, ...options })
  const { decode } = decoder
  const alarms: { readonly at: number; readonly callback: () => void }[] = []
  decoder.decode = async (entries) => {
    now += msOf(entries)
    for (const alarm of alarms.filter(({ at }) => at <= now)) {
      alarms.splice(alarms.indexOf(alarm), 1)
      alarm.callback()
    }
    return decode(entries)
  }
  const progress = { steps: 0 }
  const snapshots = budgetBytes === undefined ? undefined : new SnapshotStore(folder, budgetBytes)
  const scheduler = new Scheduler(decoder, progress, snapshots)
  const answers: Answer[] = []
  let prompts = 0
  const when = (ms: number, callback: () => void) => void alarms.push({ at: now + ms, callback })
  return {
    decoder,
    progress,
    when,
    ask(tenant, { prompt: tokens = prompt(3, 1_000 * ++prompts), ...more } = {}) {
      const left = new AbortController()
      const at: number[] = []
      const { signal } = left
      const one = job(tokens, { tenant, maxTokens: endless, signal, ...more })
      const { onToken } = one
      one.onToken = (token, logprobs) => {
        at.push(now)
        return onToken(token, logprobs)
      }
      const answer = { job: one, at, outcome: scheduler.run(one), abort: () => left.abort() }
      answer.outcome.catch(() => {})
      answers.push(answer)
      return answer
    },
    async runFor(ms) {
      when(ms, () => {
        for (const { abort } of answers) abort()
      })
      await Promise.allSettled(answers.map(({ outcome }) => outcome))
      await scheduler.whenIdle()
      expect(decoder.samplers).toBe(0)
    },
  }
}

const budgetBytes = 1_000_000
/** The tokens that the fake decoder samples for a prompt. */
const outputOf = ({ job: { prompt: tokens, tokens: output } }: Answer): Token[] =>
  prompt(output.length, (tokens[0] as number) + 1)
/** Share of the steps in which all slots decode. The others are for prefill, or to measure smaller batches. */
const fullShare = (steps: FakeDecoder['steps']): number =>
  steps.filter((entries) => entries.length === 4).length / steps.length
/** Longest time without a token, from `from` to `to`. */
function longestGap({ at }: Pick<Answer, 'at'>, from: number, to: number): number {
  const times = [from, ...at.filter((time) => time >= from && time <= to), to]
  return Math.max(...times.slice(1).map((time, index) => time - (times[index] as number)))
}

describe('while a tenant has endless answers in all slots', () => {
  test.each([
    ['that can be saved', { budgetBytes }, {}],
    ['with a seed', { budgetBytes }, { isDeterministic: true }],
    ['of a model that cannot truncate', { budgetBytes, canTruncate: false, isComplete: () => false }, {}],
    ['that cannot be saved', {}, {}],
    ['with a seed that cannot be saved', {}, { isDeterministic: true }],
  ])('another tenant starts within a slice: answers %s', async (_, options, more) => {
    const { ask, when, runFor } = createWorld(options)
    const greedy = Array.from({ length: 4 }, () => ask('ann', more))
    let other: Answer | undefined
    when(3_000, () => {
      other = ask('ben', more)
    })

    const askedAt = now + 3_000
    await runFor(12_000)

    expect((other?.at[0] ?? Number.POSITIVE_INFINITY) - askedAt).toBeLessThanOrEqual(sliceMs)
    for (const answer of [...greedy, other as Answer]) expect(answer.job.tokens).toEqual(outputOf(answer))
  })

  test('a new prompt does not wait for an answer that gave up its slot and may not continue yet', async () => {
    const { decoder, ask, when, runFor } = createWorld({ budgetBytes, sequenceCount: 1 })
    const { save } = decoder
    decoder.save = (...given) => {
      now += 100
      return save(...given)
    }
    for (const tenant of ['ann', 'ben']) ask(tenant)
    const prompts: { readonly askedAt: number; readonly answer: Answer }[] = []
    const from = now
    for (let call = 1; call <= 10; call++)
      when(3_000 + 1_430 * call, () => {
        prompts.push({ askedAt: now, answer: ask(`cleo ${call}`, { maxTokens: 1 }) })
      })

    await runFor(25_000)

    expect(now - from).toBeGreaterThanOrEqual(25_000)
    // The lead of 250 ms, two steps, and the save.
    const waits = prompts.map(({ askedAt, answer: { at } }) => (at[0] ?? Number.POSITIVE_INFINITY) - askedAt)
    expect(Math.max(...waits)).toBeLessThanOrEqual(250 + 2 * stepMs + 100)
  })

  test('slots are divided equally, and not exchanged any more once they are', async () => {
    const { decoder, ask, when, runFor } = createWorld({ budgetBytes })
    let saves = 0
    const { save } = decoder
    decoder.save = (...given) => {
      saves++
      return save(...given)
    }
    for (let call = 0; call < 4; call++) ask('ann')
    when(100, () => {
      for (let call = 0; call < 4; call++) ask('ben')
    })

    await runFor(8_000)

    expect(fullShare(decoder.steps.slice(-200))).toBeGreaterThan(0.8)
    // Two answers of the first tenant gave up their slots.
    expect(saves).toBe(2)
  })

  test('an answer that gave up its slot continues when a slot is free', async () => {
    const { decoder, ask, when, runFor } = createWorld({ budgetBytes, sequenceCount: 1 })
    let starts = 0
    const first = ask('ann', { maxTokens: 150, onStart: () => starts++ })
    let other: Answer | undefined
    when(500, () => {
      other = ask('ben', { maxTokens: 20 })
    })

    await runFor(60_000)

    expect(other?.at.at(-1)).toBeLessThan(first.at.at(-1) as number)

    expect(await first.outcome).toBe('limit')
    expect(first.job.tokens).toEqual(prompt(150, 1_001))
    expect(starts).toBe(1)
    // No token is evaluated twice: 3 tokens of each prompt, and all of the output except the last token.
    const evaluated = decoder.steps.flat().reduce((sum, [, , count]) => sum + count, 0)
    expect(evaluated).toBe(3 + 149 + 3 + 19)
    expect(readdirSync(folder)).toEqual([])
  })

  test('a prompt that gave up its slot continues where it was', async () => {
    const { decoder, ask, when, runFor } = createWorld({ budgetBytes, sequenceCount: 1 })
    const first = ask('ann', { prompt: prompt(1_000, 1_000), maxTokens: 3 })
    let other: Answer | undefined
    when(1_200, () => {
      other = ask('ben', { maxTokens: 3 })
    })

    await runFor(60_000)

    expect(other?.at.at(-1)).toBeLessThan(first.at[0] as number)

    expect(await first.outcome).toBe('limit')
    const evaluated = decoder.steps.flat().reduce((sum, [, , count]) => sum + count, 0)
    expect(evaluated).toBe(1_000 + 2 + 3 + 2)
  })
})

describe('while an answer has the only slot, a prompt of another tenant', () => {
  /** Another tenant asks after `ms`. */
  async function askAfter(ms: number, { tokenMs, ...more }: { tokenMs: number; maxTokens?: number }) {
    const { ask, when, runFor } = createWorld({ budgetBytes, sequenceCount: 1, msOf: () => tokenMs })
    const first = ask('ann', more)
    let second: Answer | undefined
    when(ms, () => {
      second = ask('ben', { maxTokens: 1 })
    })
    const askedAt = now + ms
    await runFor(5_000)
    return { first, askedAt, startedAt: second?.at[0] as number }
  }

  test('gets the slot of a long answer as soon as its tenant is 20 ms ahead', async () => {
    const { first, startedAt, askedAt } = await askAfter(1_000, { tokenMs: 5 })

    expect(startedAt - askedAt).toBeGreaterThanOrEqual(20)
    expect(startedAt - askedAt).toBeLessThanOrEqual(30)
    expect(first.job.tokens).toEqual(outputOf(first))
  })

  test('waits for an answer of up to 64 tokens that ends within 250 ms', async () => {
    const { first, startedAt } = await askAfter(9, { tokenMs: 3, maxTokens: 64 })

    expect(startedAt).toBeGreaterThan(first.at.at(-1) as number)
  })

  test('waits no longer than 250 ms for a slower answer', async () => {
    const { first, startedAt, askedAt } = await askAfter(100, { tokenMs: 20, maxTokens: 64 })

    expect(startedAt - askedAt).toBeGreaterThanOrEqual(240)
    expect(startedAt - askedAt).toBeLessThanOrEqual(290)
    expect(startedAt).toBeLessThan(first.at.at(-1) as number)
  })
})

test('a tenant that used idle slots for long still gets its turn when others arrive', async () => {
  const { ask, when, runFor } = createWorld({ budgetBytes })
  const first = Array.from({ length: 4 }, () => ask('ann'))
  ask('ben')
  when(30_000, () => {
    for (const tenant of ['cleo', 'dan', 'eve']) ask(tenant)
  })
  const from = now

  await runFor(60_000)

  const at = first.flatMap((answer) => answer.at).sort((a, b) => a - b)
  expect(longestGap({ at }, from + 30_000, from + 60_000)).toBeLessThanOrEqual(3_000)
})

describe('tenants that share one slot', () => {
  test.each([
    [0, 50, 200],
    [20, 300, 1_000],
    [200, 900, 2_000],
  ])('take turns that last longer if a change takes longer: %i ms to save a state', async (ms, min, max) => {
    const { decoder, ask, runFor } = createWorld({ budgetBytes, sequenceCount: 1 })
    const { save } = decoder
    decoder.save = (...given) => {
      now += ms
      return save(...given)
    }
    const from = now
    const answers = ['ann', 'ben'].map((tenant) => ask(tenant))

    await runFor(30_000)

    for (const answer of answers) {
      const gap = longestGap(answer, from + 10_000, from + 30_000)
      expect(gap).toBeGreaterThanOrEqual(min)
      expect(gap).toBeLessThanOrEqual(max)
    }
  })

  test('take turns of the same length while a tenant of more weight has another slot', async () => {
    async function measureTurns(weight: number) {
      const { decoder, ask, runFor } = createWorld({ budgetBytes, sequenceCount: 2 })
      const save = vi.spyOn(decoder, 'save')
      ask('cleo', { weight })
      const answers = ['ann', 'ben'].map((tenant) => ask(tenant))
      const from = now
      await runFor(20_000)
      const gaps = answers.map((answer) => longestGap(answer, from + 5_000, from + 20_000))
      return { saves: save.mock.calls.length, longestTurn: Math.max(...gaps) }
    }

    const [equal, heavy] = [await measureTurns(1), await measureTurns(10)]

    expect(equal.saves).toBeGreaterThan(50)
    expect(heavy.saves).toBeLessThanOrEqual(equal.saves)
    expect(heavy.longestTurn).toBeLessThanOrEqual(equal.longestTurn + stepMs)
  })

  test('keep it until their first token, so that no turn is wasted', async () => {
    const { decoder, ask, when, runFor } = createWorld({ budgetBytes, sequenceCount: 1 })
    let saves = 0
    const { save } = decoder
    decoder.save = (...given) => {
      saves++
      return save(...given)
    }
    ask('ann')
    ask('ben')
    let savesBefore = 0
    let first: Answer | undefined
    when(10_000, () => {
      // Ten chunks: longer than a turn.
      first = ask('cleo', { prompt: prompt(80, 500_000), maxTokens: 1 })
      savesBefore = saves
    })
    const askedAt = now + 10_000

    await runFor(12_000)

    expect(savesBefore).toBeGreaterThan(10)
    const prefill = decoder.steps.findIndex((entries) => entries.some(([, , count]) => count === 8))
    const next = decoder.steps.slice(prefill, prefill + 10)
    expect(next.every((entries) => entries.some(([, , count]) => count === 8))).toBe(true)
    expect((first as Answer).at[0]).toBeLessThan(askedAt + 1_000)
  })

  test('take turns of at most a second', async () => {
    const { ask, runFor } = createWorld({ budgetBytes, sequenceCount: 1 })
    const answers = ['ann', 'ben', 'cleo'].map((tenant) => ask(tenant))
    const from = now

    await runFor(30_000)

    for (const answer of answers) {
      expect(answer.job.tokens).toEqual(outputOf(answer))
      // A third of the time.
      expect(answer.at.length * stepMs).toBeGreaterThan(9_000)
      expect(answer.at.length * stepMs).toBeLessThan(11_000)
      expect(longestGap(answer, from, from + 30_000)).toBeLessThanOrEqual(2_000 + 5 * stepMs)
    }
  })

  test('get time by weight', async () => {
    const { ask, runFor } = createWorld({ budgetBytes, sequenceCount: 1 })
    const [heavy, light] = [ask('ann', { weight: 4 }), ask('ben', { weight: 1 })]
    const from = now

    await runFor(30_000)

    const share = heavy.at.length / (heavy.at.length + light.at.length)
    expect(share).toBeGreaterThan(0.77)
    expect(share).toBeLessThan(0.83)
    expect(longestGap(light, from, from + 30_000)).toBeLessThanOrEqual(1.5 * sliceMs)
  })

  test('share time, however long their answers are', async () => {
    const { ask, when, runFor } = createWorld({ budgetBytes, sequenceCount: 1 })
    const long = ask('ann')
    let shortTokens = 0
    for (let call = 0; call < 300; call++) ask('ben', { maxTokens: 10, onToken: () => ++shortTokens > 0 })
    let longTokens = 0
    when(19_000, () => {
      longTokens = long.at.length
    })

    await runFor(20_000)

    expect(longTokens * stepMs).toBeGreaterThan(8_500)
    expect(longTokens * stepMs).toBeLessThan(10_500)
    expect(shortTokens * stepMs).toBeGreaterThan(8_500)
  })

  test('make progress even if no state can be saved and prompts are long', async () => {
    const { ask, runFor } = createWorld({ sequenceCount: 1 })
    // Their evaluation takes 2.5 s.
    const answers = ['ann', 'ben'].map((tenant, index) =>
      ask(tenant, { prompt: prompt(1_000, 2_000 * (index + 1)) }),
    )

    await runFor(60_000)

    for (const answer of answers) {
      expect(answer.job.tokens).toEqual(outputOf(answer))
      // Nearly half of its half of the time.
      expect(answer.at.length * stepMs).toBeGreaterThan(10_000)
    }
  })

  test('wait for an answer with a seed whose state cannot be saved', async () => {
    const { ask, runFor } = createWorld({ sequenceCount: 1 })
    const seeded = ask('ann', { isDeterministic: true, maxTokens: 100 })
    const other = ask('ben', { maxTokens: 5 })

    await runFor(60_000)

    expect(seeded.job.tokens).toEqual(outputOf(seeded))
    expect(other.at[0]).toBeGreaterThan(seeded.at.at(-1) as number)
  })
})

test('switches for answers that continue take at most a quarter of the time, even if a state takes long to save', async () => {
  const { decoder, ask, when, runFor } = createWorld({ budgetBytes })
  const { save } = decoder
  let savingMs = 0
  decoder.save = (...given) => {
    now += 300
    savingMs += 300
    return save(...given)
  }
  const answers = Array.from({ length: 8 }, (_, index) => ask(`tenant ${index}`))
  let savingBefore = 0
  when(10_000, () => {
    savingBefore = savingMs
  })

  await runFor(60_000)

  expect(savingMs - savingBefore).toBeGreaterThan(5_000)
  // And one more, which began before the end.
  expect(savingMs - savingBefore).toBeLessThanOrEqual(50_000 / 4 + 300)
  for (const { at } of answers) expect(at.length).toBeGreaterThan(500)
})

describe('decode steps', () => {
  test('that only one tenant needs do not slow another tenant', async () => {
    const { ask, runFor } = createWorld({ budgetBytes })
    // Answers with a seed share no step.
    const greedy = [1, 2, 3].map(() => ask('ann', { isDeterministic: true }))
    const other = ask('ben')

    await runFor(10_000)

    const tokens = greedy.map(({ at }) => at.length)
    expect(other.at.length * stepMs).toBeGreaterThan(4_800)
    // The answers of one tenant take turns, once all have begun.
    expect(Math.max(...tokens) - Math.min(...tokens)).toBeLessThanOrEqual(5)
    expect(tokens.reduce((sum, count) => sum + count) * stepMs).toBeGreaterThan(4_700)
  })

  test('count by the time that they take', async () => {
    // The steps of the first tenant take three times as long.
    const msOf = (entries: readonly BatchEntry[]) => (entries[0]?.sequence === 0 ? 60 : 20)
    const { ask, runFor } = createWorld({ msOf })
    const [slow, fast] = [ask('ann', { isDeterministic: true }), ask('ben', { isDeterministic: true })]

    await runFor(12_000)

    // In each round, both may take a step. The slow tenant skips rounds until the other has caught up.
    expect(slow.at.length * 60).toBeLessThan(6_300)
    expect(fast.at.length * 20).toBeGreaterThan(5_700)
  })

  test('that take long are not put off by tenants that arrive one after the other', async () => {
    const isLong = (entries: readonly BatchEntry[]): boolean => entries[0]?.sequence === 0
    const { ask, runFor } = createWorld({ msOf: (entries) => (isLong(entries) ? 100 : stepMs) })
    const stream = ask('ann', { isDeterministic: true })
    for (let tenant = 0; tenant < 400; tenant++) ask(`tenant ${tenant}`, { maxTokens: 4 })
    const from = now

    await runFor(5_000)

    expect(longestGap(stream, from + 1_000, from + 5_000)).toBeLessThanOrEqual(8 * 100 + 100 + 2 * stepMs)
  })

  test('of a stream do not wait for a step of each tenant in another batch', async () => {
    // An answer with a seed shares no batch.
    const { decoder, ask, when, runFor } = createWorld({ sequenceCount: 12, msOf: () => 40 })
    const stream = ask('ann', { isDeterministic: true })
    when(200, () => {
      for (let tenant = 0; tenant < 10; tenant++) ask(`tenant ${tenant}`)
    })
    const from = now

    await runFor(10_000)

    expect(longestGap(stream, from + 1_000, from + 10_000)).toBeLessThanOrEqual(8 * 40 + 2 * 40)
    expect(decoder.steps.some((entries) => entries.length === 10)).toBe(true)
  })

  test('get three times as long as a slow save before another one that would delay waiting streams', async () => {
    const { decoder, ask, when, runFor } = createWorld({ budgetBytes, sequenceCount: 14, msOf: () => 50 })
    const { save } = decoder
    const saves: { readonly from: number; readonly to: number }[] = []
    decoder.save = (...given) => {
      saves.push({ from: now, to: now + 100 })
      now += 100
      return save(...given)
    }
    // Streams in batches of their own, and slots with states that are not saved yet.
    for (const tenant of ['ann', 'ann']) ask(tenant, { isDeterministic: true })
    for (let one = 1; one <= 10; one++) ask('app', { prompt: prompt(50, 10_000 * one), maxTokens: 1 })
    when(6_000, () => {
      for (let tenant = 0; tenant < 10; tenant++) ask(`tenant ${tenant}`, { maxTokens: 8, weight: 10 })
    })

    await runFor(15_000)

    const pauses = saves.slice(1).map(({ from }, index) => from - (saves[index]?.to ?? 0))
    expect(pauses.length).toBeGreaterThanOrEqual(5)
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(300)
  })

  test('are shared by all tenants whose sequences fit into one batch', async () => {
    const { decoder, ask, runFor } = createWorld()
    for (const tenant of ['ann', 'ann', 'ann', 'ben']) ask(tenant)

    await runFor(2_000)

    expect(fullShare(decoder.steps)).toBeGreaterThan(0.8)
  })

  test.each(['another', 'the same'])('are not delayed by short prompts of %s tenant', async (tenant) => {
    const { ask, when, runFor } = createWorld()
    const stream = ask('ben')
    const others: Answer[] = []
    when(500, () => {
      for (let call = 0; call < 400; call++)
        others.push(
          ask(tenant === 'another' ? 'ann' : 'ben', { prompt: prompt(8, 1_000 * call), maxTokens: 1 }),
        )
    })
    const from = now

    await runFor(5_000)

    expect(longestGap(stream, from, from + 5_000)).toBeLessThanOrEqual(3 * stepMs)
    // Every second step evaluates a prompt.
    expect(others.filter(({ at }) => at.length > 0).length * stepMs).toBeGreaterThan(2_000)
  })
})

test('the prompt of a tenant gets half of the prefill, whatever the number of prompts of another', async () => {
  const { ask, runFor } = createWorld()
  for (let call = 0; call < 3; call++) ask('ann', { prompt: prompt(4_000, 10_000 * (call + 1)) })
  const other = ask('ben', { prompt: prompt(400, 1_000) })
  const from = now

  await runFor(10_000)

  // 50 chunks of this prompt, and as many of the other ones.
  expect((other.at[0] as number) - from).toBeLessThanOrEqual(102 * stepMs)
})

describe('prompts of two tenants', () => {
  const tokenMs = 10
  const ownerOf = ({ steps }: FakeDecoder): string =>
    steps.map(([[sequence] = [0]]) => 'ab'[sequence]).join('')

  test.each([2, 3])('of %i chunks are evaluated one after the other', async (chunks) => {
    const { decoder, ask, runFor } = createWorld({ msOf: () => tokenMs })
    const length = 8 * chunks
    for (const [index, tenant] of ['ann', 'ben'].entries())
      ask(tenant, { prompt: prompt(length, 1_000 * (index + 1)), maxTokens: 1 })

    await runFor(5_000)

    expect(ownerOf(decoder)).toBe('a'.repeat(chunks) + 'b'.repeat(chunks))
  })

  test('that are long take turns, each until its tenant is 30 ms ahead', async () => {
    const { decoder, ask, runFor } = createWorld({ msOf: () => tokenMs })
    for (const [index, tenant] of ['ann', 'ben'].entries())
      ask(tenant, { prompt: prompt(8 * 20, 1_000 * (index + 1)), maxTokens: 1 })

    await runFor(5_000)

    const turns = ownerOf(decoder).match(/a+|b+/g) ?? []
    // In each turn but the first, a tenant makes up for its wait, and then gets ahead.
    expect(turns.slice(0, 5).map(({ length }) => length)).toEqual([3, 6, 6, 6, 6])
  })

  test.each([1, 10])(
    'start within 30 ms, however long another prompt is, and of weight %i',
    async (weight) => {
      const { ask, when, runFor } = createWorld({ msOf: () => tokenMs })
      ask('ann', { prompt: prompt(8 * 500, 10_000), weight })
      let short: Answer | undefined
      when(1_000, () => {
        short = ask('ben', { prompt: prompt(8, 1_000) })
      })
      const askedAt = now + 1_000

      await runFor(5_000)

      expect((short?.at[0] as number) - askedAt).toBeLessThanOrEqual(30 + tokenMs)
    },
  )
})

describe('while an answer is decoded, the last chunk of a prompt', () => {
  /** Returns the steps from the first chunk of a prompt of three chunks to the last one. */
  async function stepsWith(chunkMs: number): Promise<readonly string[]> {
    const isChunk = (count: number): boolean => count > 1
    const { decoder, ask, when, runFor } = createWorld({
      msOf: ([entry]) => (isChunk(entry?.tokens.length ?? 0) ? chunkMs : stepMs),
    })
    ask('ann')
    when(200, () => ask('ben', { prompt: prompt(3 * 8, 100_000) }))
    await runFor(1_000)
    const order = decoder.steps.map(([[, , count] = [0, 0, 0]]) => (isChunk(count) ? 'chunk' : 'decode'))
    const first = order.indexOf('chunk', 1)
    return order.slice(first, order.lastIndexOf('chunk') + 1)
  }

  test('follows at once if the chunk before it was quick', async () => {
    expect(await stepsWith(30)).toEqual(['chunk', 'decode', 'chunk', 'chunk'])
  })

  test('follows after a decode step if the chunk before it was slow', async () => {
    expect(await stepsWith(31)).toEqual(['chunk', 'decode', 'chunk', 'decode', 'chunk'])
  })
})

test('a prompt is saved at its breakpoint and continues, although slots change hands before each step', async () => {
  // Each round of a prefill step and a decode step gives a tenant enough lead to lose its slot.
  const { ask, runFor } = createWorld({ budgetBytes, sequenceCount: 2, msOf: () => 200 })
  const breakpoints = [{ length: 16, lifetime: '5m' }] as const
  const saved = ask('ann', { prompt: prompt(24, 500_000), breakpoints })
  for (let tenant = 0; tenant < 4; tenant++) ask(`tenant ${tenant}`)
  const from = now

  await runFor(20_000)

  expect((saved.at[0] ?? Number.POSITIVE_INFINITY) - from).toBeLessThanOrEqual(4_000)
})

describe('if states cannot be saved', () => {
  const seeded = { isDeterministic: true } as const

  test('answers with a seed of one tenant leave a slot for those of another tenant', async () => {
    const { decoder, ask, when, runFor } = createWorld()
    for (let call = 0; call < 6; call++) ask('ann', seeded)
    let other: Answer | undefined
    when(1_000, () => {
      other = ask('ben', seeded)
    })

    await runFor(5_000)

    const sequences = (steps: FakeDecoder['steps']) =>
      new Set(steps.flat().map(([sequence]) => sequence)).size
    expect(sequences(decoder.steps.slice(0, 45))).toBe(2)
    expect(other?.at[0]).toBeLessThanOrEqual(11_000 + 8 * stepMs)
  })

  test.each([2, 3, 4])('answers with a seed of several tenants leave one of %i slots', async (slots) => {
    const { ask, when, runFor } = createWorld({ sequenceCount: slots })
    for (const tenant of ['ann', 'ben', 'cleo']) for (let call = 0; call < 4; call++) ask(tenant, seeded)
    const others: Answer[] = []
    when(1_000, () => others.push(ask('dan'), ask('eve')))

    await runFor(5_000)

    for (const { at } of others) {
      expect(at[0]).toBeLessThanOrEqual(11_000 + sliceMs)
      expect(at.length).toBeGreaterThan(10)
    }
  })

  test('an answer with a seed does not wait for background answers with a seed', async () => {
    const { ask, when, runFor } = createWorld({ sequenceCount: 2 })
    ask('ann', { ...seeded, background: true })
    let foreground: Answer | undefined
    when(1_000, () => {
      foreground = ask('ben', seeded)
    })

    await runFor(5_000)

    expect(foreground?.at[0]).toBeLessThanOrEqual(11_000 + 4 * stepMs)
  })

  test('a full disk stops no answer: those with a seed keep their slots', async () => {
    const save = (): Promise<number> => Promise.reject(new Error('ENOSPC'))
    const { ask, runFor } = createWorld({ budgetBytes, sequenceCount: 2, save })
    const answers = [
      ask('ann', { isDeterministic: true, maxTokens: 200 }),
      ask('ann', { maxTokens: 200 }),
      ask('ben', { maxTokens: 200 }),
      ask('cleo', { maxTokens: 200 }),
    ]

    await runFor(60_000)

    for (const answer of answers) {
      expect(await answer.outcome).toBe('limit')
      expect(answer.job.tokens).toEqual(outputOf(answer))
    }
  })

  test('an answer with a seed gives up its slot once its state can be saved', async () => {
    let isFull = true
    const { decoder, ask, when, runFor } = createWorld({ budgetBytes, sequenceCount: 1 })
    const { save } = decoder
    let attempts = 0
    decoder.save = (...given) => {
      if (!isFull) return save(...given)
      attempts++
      return Promise.reject(new Error('ENOSPC'))
    }
    const seeded = ask('ann', { isDeterministic: true })
    const other = ask('ben')
    when(10_000, () => {
      isFull = false
    })

    await runFor(20_000)

    expect(other.at[0]).toBeGreaterThan(20_000)
    expect(other.at[0]).toBeLessThan(20_000 + 2 * sliceMs)
    expect(seeded.job.tokens).toEqual(outputOf(seeded))
    // An attempt stops all other answers, so there are few.
    expect(attempts).toBeLessThan(50)
  })

  test('a state that is larger than the limit for all states is not kept', async () => {
    const { ask, runFor } = createWorld({ budgetBytes: 100, sequenceCount: 1 })
    const answers = ['ann', 'ben'].map((tenant) => ask(tenant, { maxTokens: 150 }))

    await runFor(60_000)

    for (const answer of answers) expect(answer.job.tokens).toEqual(outputOf(answer))
    expect(readdirSync(folder)).toEqual([])
  })
})

describe('a suspended answer', () => {
  let savedStates: number
  /** Runs the callback while the answer of ann is suspended. */
  function suspended(more: Partial<GenerationJob>, callback: (answer: Answer) => void) {
    const world = createWorld({ budgetBytes, sequenceCount: 1 })
    const answer = world.ask('ann', { maxTokens: 150, ...more })
    world.when(200, () => world.ask('ben', { maxTokens: 40 }))
    world.when(900, () => {
      savedStates = readdirSync(folder).length
      callback(answer)
    })
    return { ...world, answer }
  }

  test('that aborts leaves no file', async () => {
    const { answer, runFor } = suspended({}, ({ abort }) => abort())

    await runFor(5_000)

    expect(savedStates).toBe(1)
    expect(await answer.outcome).toBe('aborted')
    expect(readdirSync(folder)).toEqual([])
  })

  test('continues from its tokens if the file is damaged', async () => {
    const { answer, runFor } = suspended({}, () => {
      for (const name of readdirSync(folder)) writeFileSync(join(folder, name), 'nonsense')
    })

    await runFor(60_000)

    expect(savedStates).toBe(1)
    expect(await answer.outcome).toBe('limit')
    expect(answer.job.tokens).toEqual(outputOf(answer))
  })

  test('fails if it has a seed and the file is damaged, since its output would change', async () => {
    const { answer, runFor } = suspended({ isDeterministic: true }, () => {
      for (const name of readdirSync(folder)) rmSync(join(folder, name))
    })

    await runFor(60_000)

    expect(savedStates).toBe(1)
    await expect(answer.outcome).rejects.toMatchObject({ code: 'upstream' })
  })

  test('does not continue before its client reads', async () => {
    const { ask, when, runFor } = createWorld({ budgetBytes, sequenceCount: 1 })
    let isRead = true
    const answer = ask('ann', { maxTokens: 150, isBackpressured: () => !isRead })
    when(200, () => ask('ben', { maxTokens: 100 }))
    when(900, () => {
      isRead = false
    })
    let tokens = 0
    when(2_200, () => {
      tokens = answer.at.length
      isRead = true
    })

    await runFor(60_000)

    expect(tokens).toBeLessThan(50)
    expect(answer.job.tokens).toEqual(outputOf(answer))
    expect(answer.job.tokens).toHaveLength(150)
    expect(longestGap(answer, 10_000, answer.at.at(-1) as number)).toBeGreaterThan(1_400)
  })
})

describe('one tenant alone', () => {
  test('keeps its answers in their slots until they end', async () => {
    const save = vi.fn()
    const { ask, runFor } = createWorld({ budgetBytes, sequenceCount: 2, save })
    const answers = [1, 2, 3].map(() => ask('ann', { maxTokens: 100 }))

    await runFor(60_000)

    expect(save).not.toHaveBeenCalled()
    expect(answers[2]?.at[0]).toBeGreaterThan(answers[0]?.at.at(-1) as number)
  })

  test('uses all slots', async () => {
    const { decoder, ask, runFor } = createWorld({ budgetBytes })
    for (let call = 0; call < 6; call++) ask('ann')

    await runFor(2_000)

    expect(fullShare(decoder.steps)).toBeGreaterThan(0.8)
  })
})

test('a foreground answer of the same tenant takes the slot of a background answer, which is saved', async () => {
  const { decoder, ask, when, runFor } = createWorld({ budgetBytes, sequenceCount: 1 })
  const background = ask('ann', { background: true, isDeterministic: true, maxTokens: 60 })
  let foreground: Answer | undefined
  when(300, () => {
    foreground = ask('ann', { maxTokens: 10 })
  })

  await runFor(60_000)

  expect(foreground?.at.at(-1)).toBeLessThan(background.at.at(-1) as number)
  expect(background.job.tokens).toEqual(outputOf(background))
  const evaluated = decoder.steps.flat().reduce((sum, [, , count]) => sum + count, 0)
  expect(evaluated).toBe(3 + 59 + 3 + 9)
})

describe('background answers of several tenants', () => {
  test('take turns', async () => {
    const { ask, runFor } = createWorld({ budgetBytes, sequenceCount: 1 })
    const answers = ['ann', 'ben'].map((tenant) => ask(tenant, { background: true }))

    await runFor(10_000)

    for (const { at } of answers) expect(at.length * stepMs).toBeGreaterThan(4_000)
  })

  test('keep their slots while they give way to foreground answers', async () => {
    const save = vi.fn()
    const { ask, when, runFor } = createWorld({ budgetBytes, sequenceCount: 2, save })
    const first = ask('ann', { background: true })
    when(100, () => {
      ask('ben', { background: true })
      ask('cleo')
    })

    await runFor(10_000)

    expect(save).not.toHaveBeenCalled()
    expect(first.at.length).toBeLessThan(10)
  })
})

test('the step counter grows while a state is saved and loaded, so that the watchdog sees progress', async () => {
  const { decoder, progress, ask, when, runFor } = createWorld({ budgetBytes, sequenceCount: 1 })
  ask('ann', { maxTokens: 100 })
  when(300, () => ask('ben', { maxTokens: 10 }))

  await runFor(60_000)

  expect(progress.steps).toBe(decoder.steps.length + 2)
})

describe('tenants that arrive one after the other', () => {
  const durationMs = 20_000
  /** At any time, eight prompts are unanswered, each of another tenant. */
  function arrive(ask: World['ask'], maxTokens: number): void {
    const until = now + durationMs
    let count = 0
    const next = (): void => {
      if (now < until) ask(`tenant ${++count}`, { maxTokens }).outcome.then(next, next)
    }
    for (let waiting = 0; waiting < 8; waiting++) next()
  }

  test('do not keep suspended answers from their slots', async () => {
    const { ask, runFor } = createWorld({ budgetBytes })
    const long = [1, 2, 3, 4].map((tenant) => ask(`long ${tenant}`))
    arrive(ask, 20)
    const from = now

    await runFor(durationMs)

    for (const answer of long) {
      expect(longestGap(answer, from, from + durationMs)).toBeLessThanOrEqual(3_000)
      // A third of the tokens, since eight prompts wait beside four answers.
      expect(answer.at.length * stepMs).toBeGreaterThan(durationMs / 5)
    }
  })

  test('do not put off a long prompt', async () => {
    const chunkMs = 100
    const isChunk = (entries: readonly BatchEntry[]): boolean =>
      entries.some(({ tokens }) => tokens.length > 3)
    const { ask, runFor } = createWorld({
      budgetBytes,
      msOf: (entries) => (isChunk(entries) ? chunkMs : stepMs),
    })
    const long = ask('ann', { prompt: prompt(10 * 8, 5_000_000) })
    arrive(ask, 1)
    const from = now

    await runFor(durationMs)

    // At least half of an equal share of the time among nine tenants, since those that arrive precede.
    expect((long.at[0] as number) - from).toBeLessThanOrEqual(2 * 9 * 10 * chunkMs)
  })
})

test('a tenant with few calls gets a slot at once while other tenants always wait for one', async () => {
  const { ask, when, runFor } = createWorld({ budgetBytes })
  const durationMs = 20_000
  const until = now + durationMs
  for (let tenant = 0; tenant < 4; tenant++) for (let call = 0; call < 2; call++) ask(`long ${tenant}`)
  const askAgain = (tenant: string): void => {
    if (now < until) void ask(tenant, { maxTokens: 2 }).outcome.finally(() => askAgain(tenant))
  }
  for (let tenant = 0; tenant < 4; tenant++) for (let call = 0; call < 2; call++) askAgain(`short ${tenant}`)
  const waitsMs: number[] = []
  const askPolitely = (tenant: number): void => {
    const askedAt = now
    const onStart = () => void waitsMs.push(now - askedAt)
    void ask(`polite ${tenant}`, { maxTokens: 10, onStart }).outcome
  }
  for (let ms = 2_000; ms < durationMs; ms += 500) when(ms, () => askPolitely(ms % 2_000))

  await runFor(durationMs + 1_000)

  expect(waitsMs.toSorted((a, b) => a - b)[waitsMs.length >> 1]).toBeLessThanOrEqual(5 * stepMs)
})
