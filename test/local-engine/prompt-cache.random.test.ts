/** Random calls: whatever comes in whatever order, what is said of the prompt cache is true. */
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { toSamplingParams } from '../../packages/core/src/engine/local/model-process/decoding/sampling.ts'
import { Scheduler } from '../../packages/core/src/engine/local/model-process/decoding/scheduler.ts'
import type {
  Breakpoint,
  CacheUsage,
} from '../../packages/core/src/engine/local/model-process/kv-cache/cache-plan.ts'
import { SnapshotStore } from '../../packages/core/src/engine/local/model-process/kv-cache/snapshots.ts'
import { LeaseBook } from '../support/lease-book.ts'
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

/** One of a few texts up to somewhere, and then something of its own. */
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

interface Surroundings {
  readonly budgetBytes: number
  readonly cutsBack: boolean
  /** There is room for all, and nothing goes wrong: then not less may be read than there is. */
  readonly isExact: boolean
}

let asked = 0
let read = 0

/** A life of a machine: throws at the first thing that is not true. */
async function live(all: readonly Step[], { budgetBytes, cutsBack, isExact }: Surroundings): Promise<void> {
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
    snapshots = new SnapshotStore(folder, budgetBytes, () => now)
    scheduler = new Scheduler(decoder, { steps: 0 }, snapshots)
    isHarmed = false
  }

  async function ask(call: Call): Promise<CacheUsage> {
    let plan: CacheUsage | undefined
    let truth: CacheUsage | undefined
    const ending = await scheduler.run({
      ...call,
      sampling,
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
    if (!plan) throw new Error('It did not begin.')
    asked++
    // Only what was going to be written can come otherwise.
    if (truth)
      expect(truth).toMatchObject({ reusedTokens: plan.reusedTokens, cacheReadTokens: plan.cacheReadTokens })
    return truth ?? plan
  }

  async function askAll(calls: readonly Call[]): Promise<void> {
    decoder.evaluated = 0
    const before = calls.map((one) => book.kept(one.tenant, one.prompt, lastOf(one), now))
    const answers = await Promise.all(calls.map(ask))

    const told = calls.map(
      ({ prompt, maxTokens }, at) =>
        prompt.length - (answers[at] as CacheUsage).reusedTokens + Math.max(0, maxTokens - 1),
    )
    expect(decoder.evaluated).toBe(told.reduce((sum, tokens) => sum + tokens))
    // One may read what another has just written.
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

  /** A state of at least so much of the prompt is there. */
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

/** What is shorter than a chunk is not kept. */
const lastOf = ({ breakpoints }: Call): number =>
  breakpoints.findLast(({ length }) => length >= chunkSize)?.length ?? 0

const runs = { numRuns: times(400, 40), seed: 3 }

test.each([true, false])(
  'with room for all as much is read as is kept, where states can be cut: %s',
  async (cutsBack) => {
    await fc.assert(
      fc.asyncProperty(steps({ weight: 1, arbitrary: kill }), (all) =>
        live(all, { budgetBytes: 2 ** 20, cutsBack, isExact: true }),
      ),
      runs,
    )
  },
  60_000,
)

test.each([true, false])(
  'with little room, faults and calls side by side no more is read than is kept, where states can be cut: %s',
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
        (all, budgetBytes) => live(all, { budgetBytes, cutsBack, isExact: false }),
      ),
      runs,
    )
  },
  60_000,
)

test('these were two thousand calls, and many of them read what others had written', () => {
  expect(asked).toBeGreaterThan(2_000)
  expect(read).toBeGreaterThan(asked / 20)
})
