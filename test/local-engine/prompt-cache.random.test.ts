/**
 * Random calls, with a decoder without a model and with the built-in model. The reported cache usage has to
 * be true, and each answer has to equal that of a caller without cached prompts.
 */
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLlm } from '@modelmount/core'
import type { CacheLifetime, Message } from '@modelmount/core/engine'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { toSamplingParams } from '../../packages/core/src/engine/local/model-process/decoding/sampling.ts'
import { Scheduler } from '../../packages/core/src/engine/local/model-process/decoding/scheduler.ts'
import type {
  Breakpoint,
  CacheUsage,
} from '../../packages/core/src/engine/local/model-process/kv-cache/cache-plan.ts'
import { SnapshotStore } from '../../packages/core/src/engine/local/model-process/kv-cache/snapshots.ts'
import { type Clocked, openClocked } from '../support/clocked.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { LeaseBook } from '../support/lease-book.ts'
import { cached, type Marked, message, notes, readMarked } from '../support/marked.ts'
import { noOrphan, until } from '../support/processes.ts'
import { rememberingDecoder, type Token } from '../support/remembering-decoder.ts'
import { times } from '../support/scale.ts'

const chunkSize = 8
const bytesPerToken = 10
const sampling = toSamplingParams({}, { vocabularySize: 10_000, contextSize: 1_000, getEogTokens: () => [] })

interface Call {
  readonly tenant: string
  readonly prompt: readonly Token[]
  readonly breakpoints: readonly Breakpoint[]
  readonly isDeterministic: boolean
  readonly maxTokens: number
}

type Step =
  | { readonly type: 'call'; readonly call: Call }
  | { readonly type: 'calls'; readonly calls: readonly Call[] }
  | { readonly type: 'wait'; readonly minutes: number }
  | { readonly type: 'kill' }
  | { readonly type: 'harm'; readonly file: number; readonly how: 'remove' | 'cut' }
  | { readonly type: 'fail'; readonly how: 'at once' | 'at the end' }

/** Prompts that begin with a prefix of one of three texts, and end differently. */
const prompts = fc
  .record({
    text: fc.nat(2),
    shared: fc.constantFrom(0, 8, 12, 16, 24, 31, 40, 64, 77),
    own: fc.nat(3),
    length: fc.integer({ min: 1, max: 20 }),
  })
  .map(({ text, shared, own, length }) => [
    ...Array.from({ length: shared }, (_, at) => (1_000 * (text + 1) + at) as Token),
    ...Array.from({ length }, (_, at) => (5_000 + 100 * own + at) as Token),
  ])
const calls: fc.Arbitrary<Call> = fc
  .record({
    tenant: fc.constantFrom('ann', 'ann', 'ben'),
    prompt: prompts,
    lengths: fc.uniqueArray(fc.constantFrom(3, 8, 12, 16, 20, 24, 31, 40, 64, 70, 77, 85), { maxLength: 4 }),
    hours: fc.nat(4),
    isDeterministic: fc.constantFrom(false, false, true),
    maxTokens: fc.nat(3),
  })
  .map(({ lengths, hours, ...call }) => ({
    ...call,
    breakpoints: lengths
      .filter((length) => length < call.prompt.length)
      .sort((a, b) => a - b)
      .map((length, at) => ({ length, lifetime: at < hours - 1 ? '1h' : '5m' })),
  }))
const call = calls.map((call): Step => ({ type: 'call', call }))
const together = fc
  .array(calls, { minLength: 2, maxLength: 5 })
  .map((calls): Step => ({ type: 'calls', calls }))
const wait = fc.constantFrom(0.5, 2, 4.9, 5.1, 20, 61).map((minutes): Step => ({ type: 'wait', minutes }))
const kill = fc.constant<Step>({ type: 'kill' })
const harm = fc.record<Step & { type: 'harm' }>({
  type: fc.constant('harm'),
  file: fc.nat(20),
  how: fc.constantFrom('remove', 'cut'),
})
const fail = fc
  .constantFrom('at once', 'at the end')
  .map((how): Step => ({ type: 'fail', how: how as 'at once' | 'at the end' }))

const steps = (...others: fc.WeightedArbitrary<Step>[]): fc.Arbitrary<Step[]> =>
  fc.array(fc.oneof({ weight: 12, arbitrary: call }, { weight: 2, arbitrary: wait }, ...others), {
    minLength: 30,
    maxLength: 30,
  })

interface Conditions {
  readonly budgetBytes: number
  readonly cutsBack: boolean
  /** The budget fits all states, and no step causes a fault. Each call has to read all that is cached. */
  readonly isExact: boolean
}

let callCount = 0
let read = 0

/** Runs the steps on a new cache. Throws at the first false report or exceeded budget. */
async function runSteps(all: readonly Step[], { budgetBytes, cutsBack, isExact }: Conditions): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'random-'))
  const book = new LeaseBook()
  let now = 1
  let folder = ''
  let isHarmed = false
  let scheduler: Scheduler
  let snapshots = new SnapshotStore(home, budgetBytes)
  const states = (): string[] => readdirSync(folder).filter((name) => name !== 'unfinished')
  const bytes = (): number => states().reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)
  const checkRoom = (): void => {
    expect(snapshots.sizeBytes).toBeLessThanOrEqual(budgetBytes)
    expect(bytes()).toBeLessThanOrEqual(budgetBytes)
  }
  const decoder = rememberingDecoder({ sequences: 3, chunkSize, cutsBack, bytesPerToken, onStep: checkRoom })
  const start = (): void => {
    folder = mkdtempSync(join(home, 'states-'))
    snapshots = new SnapshotStore(folder, budgetBytes, { now: () => now })
    scheduler = new Scheduler(decoder, { steps: 0 }, snapshots)
    isHarmed = false
  }

  async function ask(call: Call): Promise<CacheUsage> {
    let plan: CacheUsage | undefined
    let truth: CacheUsage | undefined
    const ending = await scheduler.run({
      ...call,
      sampling,
      weight: 1,
      background: false,
      signal: new AbortController().signal,
      onStart: (cached) => {
        plan = cached
      },
      onCacheChange: (cached) => {
        truth = cached
      },
      onToken: () => true,
    })
    expect(ending).toBe('limit')
    if (!plan) throw new Error('The call did not start.')
    callCount++
    // Only the number of written tokens can differ from the plan.
    if (truth)
      expect(truth).toMatchObject({ reusedTokens: plan.reusedTokens, cacheReadTokens: plan.cacheReadTokens })
    return truth ?? plan
  }

  async function askAll(calls: readonly Call[]): Promise<void> {
    decoder.evaluated = 0
    const before = calls.map((one) => book.kept(one.tenant, one.prompt, lastOf(one), now))
    const answers = await Promise.all(calls.map(ask))

    const expected = calls.map(
      ({ prompt, maxTokens }, at) =>
        prompt.length - (answers[at] as CacheUsage).reusedTokens + Math.max(0, maxTokens - 1),
    )
    expect(decoder.evaluated).toBe(expected.reduce((sum, tokens) => sum + tokens))
    // A call may read what a concurrent call has just written.
    for (const one of calls)
      for (const { length, lifetime } of one.breakpoints)
        if (calls.length > 1 && length >= chunkSize)
          book.write(one.tenant, one.prompt.slice(0, length), lifetime, now)
    for (const [at, one] of calls.entries())
      check(one, answers[at] as CacheUsage, calls.length === 1 ? before[at] : undefined)
    checkRoom()
    if (!isHarmed) expect(bytes()).toBe(snapshots.sizeBytes)
  }

  function check(one: Call, answer: CacheUsage, before: readonly [number, number] | undefined): void {
    const { tenant, prompt, breakpoints, isDeterministic } = one
    const { reusedTokens: reused, cacheReadTokens: tokens, cacheWriteTokens: writes } = answer
    const last = lastOf(one)
    const [least, most] = before ?? [0, book.kept(tenant, prompt, last, now)[1]]
    const written = writes['5m'] + writes['1h']
    const hour = breakpoints.findLast(({ lifetime }) => lifetime === '1h')?.length ?? 0
    expect(reused).toBeLessThan(prompt.length)
    expect(tokens).toBeLessThanOrEqual(Math.min(reused, most))
    expect(Math.min(writes['5m'], writes['1h'])).toBeGreaterThanOrEqual(0)
    expect(tokens + written).toBeLessThanOrEqual(last)
    if (isExact && before && !isDeterministic) expect(tokens).toBeGreaterThanOrEqual(least)
    if (isExact) {
      const all = Math.max(tokens, last)
      expect(tokens + written).toBe(all)
      expect(writes['1h']).toBe(Math.max(0, (hour < chunkSize ? 0 : hour) - tokens))
    }
    if (before && tokens + written > 0) expectKept(tenant, prompt.slice(0, last), tokens + written)
    if (before && writes['1h'] > 0) expectKept(tenant, prompt.slice(0, hour), tokens + writes['1h'])
    read += Math.sign(tokens)
    book.read(tenant, prompt, tokens, hour, now)
    for (const { length, lifetime } of breakpoints)
      if (length >= chunkSize && length > tokens) book.write(tenant, prompt.slice(0, length), lifetime, now)
  }

  /** Expects a cached state of at least `length` tokens of the prompt. */
  function expectKept(tenant: string, prompt: readonly Token[], length: number): void {
    const wish = { prompt: [...prompt, 0 as Token], tenant, isDeterministic: false, pieceEnds: [] }
    const state = snapshots.findLongest(wish)
    expect(state?.tokens.length).toBeGreaterThanOrEqual(length)
    if (!isHarmed) expect(existsSync(state?.file ?? '')).toBe(true)
  }

  start()
  try {
    for (const step of all) {
      if (step.type === 'call') await askAll([step.call])
      else if (step.type === 'calls') await askAll(step.calls)
      else if (step.type === 'wait') {
        now += step.minutes * 60_000
        book.forgetEnded(now)
      } else if (step.type === 'kill') {
        start()
        book.clear()
      } else if (step.type === 'fail') decoder.fails = step.how
      else {
        const names = states()
        const name = names[step.file % names.length]
        if (name === undefined) continue
        isHarmed = true
        if (step.how === 'remove') rmSync(join(folder, name))
        else truncateSync(join(folder, name), statSync(join(folder, name)).size - 1)
      }
    }
    snapshots.close()
    expect(existsSync(folder)).toBe(false)
  } finally {
    rmSync(home, { recursive: true })
  }
}

/** Length up to the last cached breakpoint. Prefixes shorter than a chunk are not cached. */
const lastOf = ({ breakpoints }: Call): number =>
  breakpoints.findLast(({ length }) => length >= chunkSize)?.length ?? 0

const runs = { numRuns: times(400, 20), seed: 3 }

test.each([true, false])(
  'with room for all states, random calls read all that is cached (states can be truncated: %s)',
  async (cutsBack) => {
    await fc.assert(
      fc.asyncProperty(steps({ weight: 1, arbitrary: kill }), (all) =>
        runSteps(all, { budgetBytes: 2 ** 20, cutsBack, isExact: true }),
      ),
      runs,
    )
  },
  times(600_000, 60_000),
)

test.each([true, false])(
  'with little room, faults and concurrent calls, random calls read at most what is cached (states can be truncated: %s)',
  async (cutsBack) => {
    await fc.assert(
      fc.asyncProperty(
        steps(
          { weight: 3, arbitrary: together },
          { weight: 1, arbitrary: kill },
          { weight: 1, arbitrary: harm },
          { weight: 1, arbitrary: fail },
        ),
        fc.constantFrom(0, 300, 1_500, 3_000),
        (all, budgetBytes) => runSteps(all, { budgetBytes, cutsBack, isExact: false }),
      ),
      runs,
    )
  },
  times(600_000, 60_000),
)

test('the random steps made more than 2,000 calls, and more than 5 % of them read from the cache', () => {
  expect(callCount).toBeGreaterThan(2_000)
  expect(read).toBeGreaterThan(callCount / 20)
})

interface Question {
  readonly tenant: string
  readonly messages: readonly Message[]
  readonly hasHour: boolean
  readonly seed: number | undefined
}

const lifetime = fc.constantFrom<(CacheLifetime | undefined)[]>(undefined, '5m', '5m', '1h')
/** Conversations that share beginnings, with breakpoints at random messages. Those for 1h come first. */
const questions: fc.Arbitrary<Question> = fc
  .record({
    tenant: fc.constantFrom('ann', 'ann', 'ben'),
    about: fc.nat(1),
    length: fc.constantFrom(4, 8, 15),
    turns: fc.nat(2),
    marks: fc.array(lifetime, { minLength: 4, maxLength: 4 }),
    last: fc.constantFrom('Hello', 'Who are you?', 'Tell me a short story.'),
    seed: fc.constantFrom(undefined, undefined, 7, 8),
  })
  .map(({ about, length, turns, marks, last, ...question }) => {
    const texts = [
      notes(length, about),
      ...Array.from({ length: 2 * turns }, (_, at) => notes(3, 10 * at)),
      last,
    ]
    const sorted = marks.toSorted((a, b) => Number(b === '1h') - Number(a === '1h'))
    const lifetimes = texts.map((_, at) => sorted[at])
    return {
      ...question,
      messages: texts.map((text, at) =>
        message(at === 0 ? 'system' : at % 2 === 1 ? 'user' : 'assistant', text, lifetimes[at]),
      ),
      hasHour: lifetimes.includes('1h'),
    }
  })

const requestOf = ({ messages, seed }: Question) =>
  ({
    input: { kind: 'chat', messages },
    maxTokens: 12,
    sampling: seed === undefined ? { temperature: 0 } : { temperature: 1, topK: 0, topP: 1, seed },
    returnTokens: true,
  }) as const

/**
 * The cached prompts, as far as the reported usage shows them. It does not show the positions of all
 * breakpoints, so this class only knows bounds for the number of tokens that a call may read.
 */
class Written {
  readonly #book = new LeaseBook()
  #texts: { readonly tenant: string; readonly tokens: readonly number[] }[] = []

  clear(): void {
    this.#book.clear()
    this.#texts = []
  }

  forgetEnded(now: number): void {
    this.#book.forgetEnded(now)
  }

  /** Checks the reported usage against the bounds, and records what the call has written. */
  add({ tenant, hasHour, seed }: Question, answer: Marked, now: number): void {
    const [read, five, hour] = cached(answer) as [number, number, number]
    const { inputTokens, reusedTokens } = answer.usage
    const prompt = answer.tokens.slice(0, inputTokens)
    const last = read + five + hour
    const [least] = this.#book.kept(tenant, prompt, last, now)
    const most = Math.max(
      0,
      ...this.#texts.filter((text) => text.tenant === tenant).map(({ tokens }) => common(tokens, prompt)),
    )
    expect(Math.min(read, five, hour)).toBeGreaterThanOrEqual(0)
    expect(last).toBeLessThan(inputTokens)
    expect(read).toBeLessThanOrEqual(reusedTokens)
    expect(read).toBeLessThanOrEqual(most)
    if (seed === undefined) expect(read).toBeGreaterThanOrEqual(least)
    if (!hasHour) expect(hour).toBe(0)
    expect(answer.usage).toMatchObject(answer.plan)

    this.#book.read(tenant, prompt, read, 0, now)
    if (hour > 0) this.#book.write(tenant, prompt.slice(0, read + hour), '1h', now)
    if (five > 0) this.#book.write(tenant, prompt.slice(0, last), '5m', now)
    this.#texts.push({ tenant, tokens: prompt.slice(0, last) })
  }
}

function common(some: readonly number[], others: readonly number[]): number {
  const end = some.findIndex((token, at) => others[at] !== token)
  return end === -1 ? some.length : end
}

describe('the built-in model, on a clock that the test sets', () => {
  let model: Clocked

  beforeAll(async () => {
    model = await openClocked({ contextSize: 1024, parallel: 3 })
  })
  afterAll(() => model.close())

  const count = times(600, 20)

  test(`gives ${count} random calls the same answers as a caller without cached prompts`, async () => {
    const steps = fc.oneof(
      { weight: 10, arbitrary: questions },
      { weight: 2, arbitrary: fc.constantFrom(1, 4.9, 5.1, 61) },
      { weight: 1, arbitrary: fc.constant('kill' as const) },
    )
    const written = new Written()
    let callCount = 0
    let reads = 0
    for (const step of fc.sample(steps, { numRuns: 2 * count, seed: 5 })) {
      if (callCount === count) break
      if (step === 'kill') {
        model.restart()
        written.clear()
      } else if (typeof step === 'number') {
        model.now += step * 60_000
        written.forgetEnded(model.now)
        if (step > 60) written.clear()
      } else {
        model.evaluated = 0
        const answer = await model.ask(requestOf(step), step.tenant)
        const { inputTokens, reusedTokens, outputTokens } = answer.usage
        const evaluated = inputTokens - reusedTokens + outputTokens
        // The model evaluates the last output token only if an end-of-sequence token follows it.
        expect([evaluated, evaluated - 1]).toContain(model.evaluated)
        written.add(step, answer, model.now)
        reads += Math.sign(cached(answer)[0])
        const cold = await model.ask(requestOf(step), `cold ${callCount++}`)
        expect(cached(cold)[0]).toBe(0)
        expect(cold.usage.reusedTokens).toBe(0)
        expect([step.seed, answer.usage, answer.text]).toEqual([step.seed, answer.usage, cold.text])
      }
    }

    expect(callCount).toBe(count)
    expect(reads).toBeGreaterThan(count / 10)
  }, 600_000)
})

describe('a model process', () => {
  const models = emptyFolder()
  const ramDisk = '/dev/shm'
  const kills = times(20, 3)
  const callsEach = 8

  test(`after each of ${kills} kills between random calls has an empty cache, and leaves no file`, async () => {
    const llm = await createLlm({ models, local: { contextSize: 1023, parallel: 2 } })
    const written = new Written()
    const processIds = new Set<number>()
    let reads = 0
    const all = fc.sample(questions, { numRuns: kills * callsEach, seed: 6 })
    for (const [at, question] of all.entries()) {
      const generation = await llm.generate(
        { model: 'tiny', ...requestOf(question) },
        { signal: new AbortController().signal, caller: { id: 'somebody', tenant: question.tenant } },
      )
      const answer = await readMarked(generation)
      written.add(question, answer, 1)
      reads += Math.sign(cached(answer)[0])
      const [{ processId = 0 } = {}] = llm.loaded()
      processIds.add(processId)
      if (at % callsEach < callsEach - 1) continue
      process.kill(processId, 'SIGKILL')
      await until(() => llm.loaded()[0]?.processId !== processId, 5_000)
      written.clear()
    }
    // The next model process deletes the files of the last killed one.
    await llm.load('tiny')
    processIds.add(llm.loaded()[0]?.processId ?? 0)
    await llm.close()
    await noOrphan(processIds)

    expect(processIds.size).toBe(kills + 1)
    expect(reads).toBeGreaterThan(kills)
    const remaining = (existsSync(ramDisk) ? readdirSync(ramDisk) : []).filter((name) =>
      [...processIds].some((id) => name.startsWith(`modelmount-${id}-`)),
    )
    expect(remaining).toEqual([])
  }, 600_000)
})
