/** A reader that takes the events of an answer later than the engine generates them. */
import { afterEach, describe, expect, test, vi } from 'vitest'
import { pacedEngine } from '../../../../../test/support/paced-engine.ts'
import type { Caller } from '../../accounts/auth/caller.ts'
import { createLlm } from '../../create-llm.ts'
import type { GenerateEvent } from '../../engine/events.ts'
import type { GenerateRequest } from '../../engine/request.ts'
import { LlmError } from '../../errors.ts'
import type { Llm } from '../../llm.ts'
import type { LlmOptions } from '../../options.ts'
import { scriptedEngine } from '../../testing/scripted-engine.ts'

const prices = { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } }
const ann: Caller = { id: 'ann' }
const bob: Caller = { id: 'bob' }
const chat = (content: string): GenerateRequest => ({
  model: 'tiny',
  input: { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text: content }] }] },
})
const words = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `word${index} `)

const opened: Llm[] = []
afterEach(async () => {
  vi.useRealTimers()
  for (const llm of opened.splice(0)) await llm.close()
})

async function start(options: LlmOptions): Promise<Llm> {
  const llm = await createLlm(options)
  opened.push(llm)
  return llm
}

type Events = AsyncIterator<GenerateEvent, undefined>

/** Starts an answer. Its first event is the `start` event. */
async function open(llm: Llm, caller: Caller, more: Partial<GenerateRequest> = {}): Promise<Events> {
  const { signal } = new AbortController()
  const generation = await llm.generate({ ...chat('Hi'), ...more }, { signal, caller, stream: true })
  return generation[Symbol.asyncIterator]() as Events
}

/** Takes `count` events, or fewer if the answer ends before. Returns the texts. */
async function take(events: Events, count = Number.POSITIVE_INFINITY): Promise<string[]> {
  const texts: string[] = []
  for (let taken = 0; taken < count; taken++) {
    const { value, done } = await events.next()
    if (done) break
    if (value.type === 'text') texts.push(value.text)
  }
  return texts
}

const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'none',
    (cause: unknown) => LlmError.from(cause).code,
  )

/** Lets an engine that never waits generate what it can. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** An engine that counts its events. */
function countingEngine(...texts: readonly string[]) {
  const scripted = scriptedEngine([...texts])
  const counts = { generated: 0, ended: 0 }
  const generate: typeof scripted.generate = async function* (...call) {
    for await (const event of scripted.generate(...call)) {
      counts.generated++
      if (event.type === 'end') counts.ended++
      yield event
    }
  }
  return { engine: { ...scripted, generate }, counts }
}

describe('while nobody reads an answer, the engine finishes it, and', () => {
  test('its permit is released', async () => {
    // A model has 64 permits.
    const llm = await start({ engine: scriptedEngine(words(20)), maxQueued: 0 })
    const unread = await Promise.all(Array.from({ length: 64 }, () => open(llm, ann)))
    await settle()

    const texts = await take(await open(llm, bob))

    expect(texts).toEqual(words(20))
    expect(await take(unread[0] as Events)).toEqual(words(20))
  })

  test('it does not count as a concurrent call', async () => {
    const llm = await start({ engine: scriptedEngine(words(20)) })
    const caller: Caller = { id: 'ann', limits: { concurrent: 1 } }
    const unread = await open(llm, caller)
    await settle()

    expect(await take(await open(llm, caller))).toEqual(words(20))
    expect(await take(unread)).toEqual(words(20))
  })

  test('its tokens count towards tokens per minute', async () => {
    const llm = await start({ engine: scriptedEngine(words(500)) })
    const caller: Caller = { id: 'ann', limits: { tokensPerMinute: 1_000 } }
    await open(llm, caller)
    await settle()

    const [status] = await llm.limits.of(caller)

    // The answer has 501 tokens. The bucket refills a little meanwhile.
    expect(status?.remaining).toBeGreaterThanOrEqual(1_000 - 501)
    expect(status?.remaining).toBeLessThan(1_000 - 501 + 100)
  })

  test('its tokens count towards tokens per minute, although its reader leaves after three of them', async () => {
    const llm = await start({ engine: scriptedEngine(words(500)) })
    const caller: Caller = { id: 'ann', limits: { tokensPerMinute: 1_000 } }
    const left = await open(llm, caller)
    expect(await take(left, 1 + 3)).toHaveLength(3)
    await settle()
    await left.return?.()

    const [status] = await llm.limits.of(caller)

    // The bucket refills a little meanwhile.
    expect(status?.remaining).toBeGreaterThanOrEqual(1_000 - 501)
    expect(status?.remaining).toBeLessThan(1_000 - 501 + 100)
  })

  test('its worst-case cost stays reserved until it is settled', async () => {
    const llm = await start({ engine: scriptedEngine(words(20)), database: ':memory:', prices })
    // An answer costs 1,000 + 20 × 2,000. The limit covers the worst case of one answer only.
    const caller: Caller = { id: 'ann', spendingLimit: { usd: 0.00006, period: 'day' } }
    const unread = await open(llm, caller, { maxTokens: 20 })
    await settle()

    expect(await codeOf(open(llm, caller, { maxTokens: 20 }))).toBe('rate_limit')
    await take(unread, 3)
    await unread.return?.()
    expect(await take(await open(llm, caller, { maxTokens: 20 }))).toHaveLength(20)
  })

  test('it is charged for what its reader took, and the rest is recorded as undelivered', async () => {
    const llm = await start({ engine: scriptedEngine(words(50)), database: ':memory:', prices })
    const left = await open(llm, ann)
    await take(left, 1 + 3)
    await settle()
    await left.return?.()
    await take(await open(llm, ann))

    expect(await llm.usage.calls()).toMatchObject([
      { status: 'ended', tokens: { input: 1, output: 50 }, undeliveredTokens: 0, nanoUsd: 101_000 },
      { status: 'aborted', tokens: { input: 1, output: 3 }, undeliveredTokens: 47, nanoUsd: 7_000 },
    ])
    expect(await llm.usage.report({ by: 'key' })).toMatchObject([
      { group: 'ann', tokens: { output: 53 }, undeliveredTokens: 47, nanoUsd: 108_000n },
    ])
  })

  test('an error of the engine comes after the events before it', async () => {
    const engine = scriptedEngine(['one ', 'two ', new LlmError('upstream', 'It broke.')])
    const llm = await start({ engine, database: ':memory:', prices })
    const events = await open(llm, ann)
    await settle()

    expect(await take(events, 3)).toEqual(['one ', 'two '])
    expect(await codeOf(events.next())).toBe('upstream')
    expect(await events.next()).toEqual({ value: undefined, done: true })
    expect(await llm.usage.calls()).toMatchObject([
      { status: 'failed', tokens: { output: 2 }, undeliveredTokens: 0 },
    ])
  })

  test('the answers of a group follow each other', async () => {
    const { engine, counts } = countingEngine(...words(5))
    const llm = await start({ engine, maxQueued: 0 })
    const { signal } = new AbortController()
    const group = await llm.as(ann).generateGroup([chat('One'), chat('Two'), chat('Three')], { signal })

    const answers = group.startInOrder()
    await expect.poll(() => counts.ended).toBe(3)

    for (const answer of answers)
      expect(await take((await answer)[Symbol.asyncIterator]() as Events)).toEqual(words(5))
  })
})

test('when one of several answers fails, the engine stops the others, whose readers get what came before', async () => {
  let isStopped = false
  const scripted = scriptedEngine(words(3))
  const broken = scriptedEngine(['one ', new LlmError('upstream', 'It broke.')])
  const generate: typeof scripted.generate = (request, call) => {
    if (JSON.stringify(request.input).includes('Bad')) return broken.generate(request, call)
    const events = scripted.generate(request, call)[Symbol.asyncIterator]()
    let count = 0
    let stop: (end: IteratorResult<GenerateEvent>) => void = () => {}
    const stopped = new Promise<IteratorResult<GenerateEvent>>((resolve) => {
      stop = resolve
    })
    return {
      [Symbol.asyncIterator]: () => ({
        next: () => (++count > 3 ? stopped : events.next()),
        return: async () => {
          isStopped = true
          const end = { value: undefined, done: true } as const
          stop(end)
          return end
        },
      }),
    }
  }
  const llm = await start({ engine: { ...scripted, generate }, database: ':memory:', prices })
  const { signal } = new AbortController()
  const group = await llm.as(ann).generateGroup([chat('Good'), chat('Bad')], { signal })
  const good = (await group.start(0))[Symbol.asyncIterator]() as Events
  await group.start(1)
  await settle()

  expect(isStopped).toBe(true)
  expect(await take(good, 3)).toEqual(words(2))
  await expect(good.next()).rejects.toMatchObject({ code: 'upstream', message: 'It broke.' })
  await expect
    .poll(() => llm.usage.calls())
    .toMatchObject([{ status: 'failed', tokens: { output: 2 }, undeliveredTokens: 1 }])
})

test('a reader of llm.chat() is charged for the pieces that it took', async () => {
  const llm = await start({ engine: scriptedEngine(words(50)), database: ':memory:', prices })

  for await (const piece of llm.chat('Hi', { stream: true, caller: ann })) {
    await settle()
    if (piece === 'word2 ') break
  }

  await expect
    .poll(() => llm.usage.calls())
    .toMatchObject([{ status: 'aborted', tokens: { output: 3 }, undeliveredTokens: 47 }])
})

test('a reader of llm.chat() that stops while it waits ends the answer', async () => {
  const engine = pacedEngine(scriptedEngine('one two'))
  const llm = await start({ engine, database: ':memory:' })
  const pieces = llm.chat('Hi', { stream: true, caller: ann })[Symbol.asyncIterator]()
  const waiting = pieces.next()
  await expect.poll(() => engine.requests.length).toBe(1)

  await pieces.return?.()

  expect(await waiting).toEqual({ value: undefined, done: true })
  await expect.poll(() => llm.usage.calls()).toMatchObject([{ status: 'aborted' }])
})

describe('while the buffer of a tenant is full,', () => {
  const flood = 200

  test('its generation waits for its reader, and continues with each event that is taken', async () => {
    const { engine, counts } = countingEngine(...words(flood))
    const llm = await start({ engine, outputBuffer: { perCaller: '4kb' } })
    const events = await open(llm, ann)
    await settle()
    const first = counts.generated
    await settle()

    expect(first).toBeGreaterThan(5)
    expect(first).toBeLessThan(60)
    expect(counts.generated).toBe(first)
    expect(await take(events)).toEqual(words(flood))
  })

  test('its readers that keep up are not delayed, nor are those of others', async () => {
    const { engine, counts } = countingEngine(...words(flood))
    const llm = await start({ engine, outputBuffer: { perCaller: '4kb' } })
    const unread = await open(llm, ann)
    await settle()
    const before = counts.generated

    expect(await take(await open(llm, ann))).toEqual(words(flood))
    expect(await take(await open(llm, bob))).toEqual(words(flood))
    expect(counts.generated).toBe(before + 2 * (flood + 2))
    await unread.return?.()
  })

  test('the generations of its other callers wait for their readers', async () => {
    const { engine, counts } = countingEngine(...words(flood))
    const llm = await start({ engine, outputBuffer: { perCaller: '4kb' } })
    const unread = await open(llm, { id: 'key 1', tenant: 'team' })
    await settle()
    const before = counts.generated

    const other = await open(llm, { id: 'key 2', tenant: 'team' })
    await settle()

    expect(counts.generated - before).toBeLessThan(5)
    expect(await take(other)).toEqual(words(flood))
    await unread.return?.()
  })

  test('another answer of the caller continues when the first one is closed', async () => {
    const { engine, counts } = countingEngine(...words(flood))
    const llm = await start({ engine, outputBuffer: { perCaller: '40kb' } })
    const unread = await Promise.all([open(llm, ann), open(llm, ann), open(llm, ann)])
    await settle()
    const ended = counts.ended

    for (const events of unread.slice(0, 2)) await events.return?.()
    await settle()

    expect(ended).toBeLessThan(3)
    expect(await take(unread[2] as Events)).toEqual(words(flood))
  })
})

test('while the buffers of all tenants together are full, a reader that keeps up gets its answer', async () => {
  const { engine, counts } = countingEngine(...words(200))
  const llm = await start({ engine, outputBuffer: { perCaller: '1mb', total: '4kb' } })
  const unread = await Promise.all(['c', 'd', 'e'].map((id) => open(llm, { id })))
  await settle()
  const before = counts.generated

  expect(before).toBeLessThan(80)
  expect(await take(await open(llm, bob))).toEqual(words(200))
  expect(counts.generated).toBe(before + 202)
  for (const events of unread) expect(await take(events)).toEqual(words(200))
})

describe('a reader that takes nothing for the stall timeout', () => {
  const stalling = async (options: LlmOptions = {}): Promise<Llm> => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    return start({
      engine: scriptedEngine(words(50)),
      database: ':memory:',
      prices,
      outputBuffer: { stallTimeout: '12s' },
      ...options,
    })
  }

  test('loses its answer, which is charged for what it took', async () => {
    const llm = await stalling()
    const events = await open(llm, ann)
    await take(events, 1 + 3)
    await settle()

    vi.advanceTimersByTime(12_000)
    expect(await llm.usage.calls()).toEqual([])
    vi.advanceTimersByTime(1_000)

    const error = LlmError.from(await events.next().catch((cause: unknown) => cause))
    expect(error).toMatchObject({ code: 'invalid_request', message: expect.stringContaining('for 12 s') })
    expect(await events.next()).toEqual({ value: undefined, done: true })
    expect(await llm.usage.calls()).toMatchObject([
      { status: 'aborted', tokens: { output: 3 }, undeliveredTokens: 47 },
    ])
  })

  test('keeps its answer if it takes an event in time', async () => {
    const llm = await stalling()
    const events = await open(llm, ann)
    const texts: string[] = []
    for (let round = 0; round < 5; round++) {
      texts.push(...(await take(events, 2)))
      vi.advanceTimersByTime(12_000)
    }

    expect([...texts, ...(await take(events))]).toEqual(words(50))
  })

  test('keeps its answer while it waits for the engine', async () => {
    const engine = pacedEngine(scriptedEngine(words(3)))
    const llm = await stalling({ engine })
    engine.allow(2)
    const events = await open(llm, ann)
    await take(events, 2)
    const rest = take(events)

    vi.advanceTimersByTime(120_000)
    engine.allow(3)

    expect(await rest).toEqual(words(3).slice(1))
  })

  test('keeps its answer if the output came later than that', async () => {
    const engine = pacedEngine(scriptedEngine(words(5)), ({ maxTokens }) => maxTokens === 100)
    const llm = await stalling({ engine })
    // The clock runs, because another reader is behind.
    const other = await open(llm, bob)
    await settle()
    engine.allow(1)
    const events = await open(llm, ann, { maxTokens: 100 })
    await take(events, 1)
    for (let round = 0; round < 3; round++) {
      vi.advanceTimersByTime(12_000)
      await take(other, 1)
    }
    engine.allow(6)
    await settle()
    vi.advanceTimersByTime(1_000)

    expect(await take(events)).toEqual(words(5))
  })

  test('loses it even if it has never asked for an event', async () => {
    const llm = await stalling()
    await open(llm, ann)
    await settle()

    vi.advanceTimersByTime(13_000)

    await expect.poll(() => llm.usage.calls()).toMatchObject([{ status: 'aborted', undeliveredTokens: 50 }])
  })

  test('of several answers of one call loses all of them', async () => {
    const llm = await stalling()
    const { signal } = new AbortController()
    const group = await llm.as(ann).generateGroup([chat('One'), chat('Two')], { signal })
    const [one, two] = await Promise.all(group.startInOrder())
    await settle()

    vi.advanceTimersByTime(13_000)

    await expect.poll(() => llm.usage.calls()).toMatchObject([{ status: 'aborted', undeliveredTokens: 100 }])
    for (const answer of [one, two])
      expect(await codeOf(take(answer?.[Symbol.asyncIterator]() as Events))).toBe('invalid_request')
  })

  test('of several answers of one call loses them, even if another answer begins in the meantime', async () => {
    const isSecond = ({ input }: GenerateRequest): boolean => JSON.stringify(input).includes('Two')
    const engine = pacedEngine(scriptedEngine(words(50)), isSecond)
    const llm = await stalling({ engine })
    const { signal } = new AbortController()
    const group = await llm.as(ann).generateGroup([chat('One'), chat('Two')], { signal })
    const [, two] = group.startInOrder()
    await settle()

    vi.advanceTimersByTime(8_000)
    engine.allow(1)
    await two
    vi.advanceTimersByTime(5_000)

    await expect.poll(() => llm.usage.calls()).toMatchObject([{ status: 'aborted', undeliveredTokens: 50 }])
  })

  test('of several answers of one call gets the error of the answer that failed', async () => {
    const isBad = ({ input }: GenerateRequest): boolean => JSON.stringify(input).includes('Bad')
    const engine = scriptedEngine((request) =>
      isBad(request) ? ['one ', new LlmError('upstream', 'It broke.')] : words(50),
    )
    const llm = await stalling({ engine })
    const { signal } = new AbortController()
    const group = await llm.as(ann).generateGroup([chat('Good'), chat('Bad')], { signal })
    const answers = await Promise.all(group.startInOrder())
    await settle()

    vi.advanceTimersByTime(13_000)

    await expect.poll(() => llm.usage.calls()).toMatchObject([{ status: 'failed' }])
    const failures = answers.map((answer) => take(answer[Symbol.asyncIterator]() as Events))
    for (const failure of failures) await expect(failure).rejects.toMatchObject({ message: 'It broke.' })
  })

  test('of several answers of one call keeps those whose turn has not come', async () => {
    const llm = await stalling()
    const { signal } = new AbortController()
    const group = await llm.as(ann).generateGroup([chat('One'), chat('Two')], { signal })
    const [one, two] = (await Promise.all(group.startInOrder())).map(
      (answer) => answer[Symbol.asyncIterator]() as Events,
    )
    for (let round = 0; round < 3; round++) {
      await take(one as Events, 2)
      vi.advanceTimersByTime(12_000)
    }

    await take(one as Events)
    expect(await take(two as Events)).toEqual(words(50))
  })
})

test('a generation that waits for its reader for the stall timeout in total ends, even if the reader reads on', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const { engine, counts } = countingEngine(...words(50))
  const llm = await start({ engine, outputBuffer: { perCaller: 0, stallTimeout: '12s' } })
  const events = await open(llm, ann)
  for (let second = 0; second < 12; second++) {
    await take(events, 1)
    await settle()
    vi.advanceTimersByTime(1_000)
  }
  const before = await codeOf(events.next())
  await settle()
  vi.advanceTimersByTime(1_000)

  expect(before).toBe('none')
  expect(await codeOf(events.next())).toBe('invalid_request')
  expect(counts.generated).toBeLessThan(20)
})

test.each([
  [{ perCaller: 'much' }, '`outputBuffer.perCaller`: Expected a byte size'],
  [{ total: -1 }, '`outputBuffer.total`: Expected a byte size'],
  [{ stallTimeout: 999 }, '`outputBuffer.stallTimeout` to be from 1 s to 24 h, got 999'],
  [{ stallTimeout: '25h' }, 'from 1 s to 24 h'],
  [{ perCaler: '1mb' }, 'Unknown option `outputBuffer.perCaler`'],
])('rejects the option %o', async (outputBuffer, message) => {
  await expect(createLlm({ outputBuffer: outputBuffer as never })).rejects.toThrow(message)
})
