import { getEventListeners } from 'node:events'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { CallerSubjects } from '../accounts/auth/caller-subjects.ts'
import type { Engine } from '../engine/engine.ts'
import { type GenerateEvent, uncached } from '../engine/events.ts'
import type { GenerateRequest } from '../engine/request.ts'
import { LlmError } from '../errors.ts'
import type { RateLimiter } from '../limits/limits.ts'
import { scriptedEngine } from '../testing/scripted-engine.ts'
import type { CallOptions } from './call.ts'
import type { Generation } from './generation.ts'
import { OutputBudget } from './output/output-budget.ts'
import { CallPipeline } from './pipeline.ts'
import type { CallStep } from './step.ts'
import { LimitsStep } from './steps/limits.ts'

const request: GenerateRequest = {
  model: 'team/tiny',
  input: { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] },
}
const start: GenerateEvent = {
  type: 'start',
  model: 'team/tiny',
  inputTokens: 1,
  reusedTokens: 0,
  ...uncached,
  fingerprint: 'fp_1',
}
const hello: GenerateEvent = { type: 'text', text: 'Hello', tokens: 1 }
const end: GenerateEvent = {
  type: 'end',
  finishReason: 'stop',
  usage: { inputTokens: 1, reusedTokens: 0, ...uncached, outputTokens: 1 },
  timings: { loadMs: 0, promptMs: 0, generateMs: 0 },
}

const generate = (
  engine: Engine,
  request: GenerateRequest,
  { stream = false, ...call }: CallOptions & { readonly signal: AbortSignal },
  steps: readonly CallStep[] = [],
): Promise<Generation> =>
  new CallPipeline(
    engine,
    steps,
    new OutputBudget({ tenantBytes: 1e6, totalBytes: 1e6, stallMs: 60_000 }),
  ).generate({ kind: 'generate', requests: [request], ...call }, stream)

const engineOf = (answer: Engine['generate']): Engine => ({ ...scriptedEngine(''), generate: answer })
const live = (): AbortSignal => new AbortController().signal
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))

/** An engine whose events fail when the test calls `fail`. */
function failLater(): { events: Engine['generate']; fail: (error: Error) => void } {
  let fail: (error: Error) => void = () => {}
  const failure = new Promise<never>((_resolve, reject) => {
    fail = reject
  })
  return {
    fail: (error) => fail(error),
    async *events() {
      yield await failure
    },
  }
}

async function all(events: AsyncIterable<GenerateEvent>): Promise<GenerateEvent[]> {
  const read: GenerateEvent[] = []
  for await (const event of events) read.push(event)
  return read
}

afterEach(() => {
  vi.useRealTimers()
})

test('yields the events of the engine in order', async () => {
  const engine = engineOf(async function* () {
    yield start
    yield hello
    yield end
  })

  const generation = await generate(engine, request, { signal: live() })

  expect(await all(generation)).toEqual([start, hello, end])
})

test('an answer has a unique id, the model name of the request, and a date', async () => {
  const engine = engineOf(async function* () {
    yield start
    yield end
  })
  const before = Date.now()

  const one = await generate(engine, request, { signal: live() })
  const two = await generate(engine, request, { signal: live() })

  expect(one.id).toMatch(/^[\w-]{21}$/)
  expect(two.id).not.toBe(one.id)
  expect(one.model).toBe('team/tiny')
  expect(one.createdAt.getTime()).toBeGreaterThanOrEqual(before)
})

test('the engine gets the request, a signal, the tenant, its weight and the background flag', async () => {
  const calls: unknown[] = []
  const engine = engineOf(async function* (...call) {
    calls.push(call)
    yield start
    yield end
  })

  await generate(engine, request, { signal: live(), stream: true, caller: { id: 'ann' }, background: true })

  const signal = expect.any(AbortSignal)
  expect(calls).toEqual([[request, { signal, tenant: 'ann', weight: 1, background: true }]])
})

test.each([
  [undefined, ''],
  [{ id: 'ann' }, 'ann'],
  [{ id: 'ann', tenant: 'team' }, 'team'],
])('calls of the caller %j have the tenant %j', async (caller, tenant) => {
  const tenants: unknown[] = []
  const engine = engineOf(async function* (_request, call) {
    tenants.push(call.tenant)
    yield start
    yield end
  })

  await generate(engine, request, { signal: live(), ...(caller && { caller }) })

  expect(tenants).toEqual([tenant])
})

test('a started answer reports the cached tokens of its prompt', async () => {
  const read = { ...uncached, inputTokens: 9, reusedTokens: 5 }
  const engine = engineOf(async function* () {
    yield { ...start, ...read }
    yield end
  })

  const generation = await generate(engine, request, { signal: live(), stream: true })

  expect(generation.promptUsage).toMatchObject(read)
  expect(await all(generation)).toEqual([{ ...start, ...read }, end])
})

test.each([{ stream: false }, { stream: true }])(
  'an error before the first event rejects: %j',
  async (how) => {
    const error = new LlmError('not_found', 'No such model.')
    // biome-ignore lint/correctness/useYield: it throws before the first event.
    const engine = engineOf(async function* () {
      throw error
    })

    const generation = generate(engine, request, { signal: live(), ...how })

    await expect(generation).rejects.toBe(error)
  },
)

test('an error after the first event is thrown to the reader', async () => {
  const error = new LlmError('upstream', 'The process ended.')
  const engine = engineOf(async function* () {
    yield start
    throw error
  })
  const generation = await generate(engine, request, { signal: live() })

  const read = all(generation)

  await expect(read).rejects.toBe(error)
})

test('a stream opens after 5 s while the model still loads, and then continues with its first event', async () => {
  vi.useFakeTimers()
  let loaded: () => void = () => {}
  const loading = new Promise<void>((resolve) => {
    loaded = resolve
  })
  const engine = engineOf(async function* () {
    await loading
    yield start
    yield end
  })
  let opened = false

  const generation = generate(engine, request, { signal: live(), stream: true })
  void generation.then(() => {
    opened = true
  })
  await vi.advanceTimersByTimeAsync(4_999)
  const before = opened
  await vi.advanceTimersByTimeAsync(1)

  expect(before).toBe(false)
  expect(opened).toBe(true)
  loaded()
  expect(await generation).not.toHaveProperty('promptUsage')
  expect(await all(await generation)).toEqual([start, end])
})

test('without streaming, an answer waits for its first event without a time limit', async () => {
  vi.useFakeTimers()
  const { events, fail } = failLater()
  let settled = false

  const generation = generate(engineOf(events), request, { signal: live() })
  generation.catch(() => {
    settled = true
  })
  await vi.advanceTimersByTimeAsync(3_600_000)
  const before = settled
  fail(new LlmError('upstream', 'Could not be loaded.'))

  await expect(generation).rejects.toMatchObject({ code: 'upstream' })
  expect(before).toBe(false)
})

test('an error after a stream was opened early is thrown to the reader, not to the process', async () => {
  vi.useFakeTimers()
  const { events, fail } = failLater()
  const opening = generate(engineOf(events), request, { signal: live(), stream: true })
  await vi.advanceTimersByTimeAsync(5_000)
  const generation = await opening

  fail(new LlmError('upstream', 'Could not be loaded.'))
  vi.useRealTimers()
  await settle()

  await expect(all(generation)).rejects.toMatchObject({ message: 'Could not be loaded.' })
})

test('no timer remains when the first event comes before 5 s', async () => {
  vi.useFakeTimers()
  const engine = engineOf(async function* (_request, { signal }) {
    yield start
    await aborted(signal)
  })

  await generate(engine, request, { signal: live(), stream: true })

  expect(vi.getTimerCount()).toBe(0)
})

test('an engine that stops without an end event causes an upstream error after its output', async () => {
  const engine = engineOf(async function* () {
    yield start
    yield hello
  })
  const generation = await generate(engine, request, { signal: live() })
  const read: GenerateEvent[] = []

  const reading = (async () => {
    for await (const event of generation) read.push(event)
  })()

  await expect(reading).rejects.toMatchObject({ name: 'LlmError', code: 'upstream' })
  expect(read).toEqual([start, hello])
})

test('an engine without any event causes an upstream error before the answer begins', async () => {
  const engine = engineOf(async function* () {})

  const generation = generate(engine, request, { signal: live() })

  await expect(generation).rejects.toMatchObject({ name: 'LlmError', code: 'upstream' })
})

test('reads nothing after the final event, and closes the engine', async () => {
  let closed = false
  const engine = engineOf(async function* () {
    try {
      yield start
      yield end
      yield hello
    } finally {
      closed = true
    }
  })
  const generation = await generate(engine, request, { signal: live() })

  const read = await all(generation)

  expect(read).toEqual([start, end])
  expect(closed).toBe(true)
})

test("an abort closes the engine's events, also without a reader", async () => {
  const controller = new AbortController()
  let closed = false
  const engine = engineOf(async function* (_request, { signal }) {
    try {
      yield start
      yield hello
      await aborted(signal)
    } finally {
      closed = true
    }
  })
  await generate(engine, request, { signal: controller.signal, stream: true })
  const before = closed

  controller.abort()
  await settle()

  expect(before).toBe(false)
  expect(closed).toBe(true)
})

test('a waiting reader ends without an error when the signal aborts', async () => {
  const controller = new AbortController()
  const engine = engineOf(async function* (_request, { signal }) {
    yield start
    await aborted(signal)
  })
  const generation = await generate(engine, request, { signal: controller.signal })
  const reading = all(generation)
  await settle()

  controller.abort()

  expect(await reading).toEqual([start])
})

test('a call aborted before its first event yields no events', async () => {
  const controller = new AbortController()
  // biome-ignore lint/correctness/useYield: it waits before the first event.
  const engine = engineOf(async function* (_request, { signal }) {
    await aborted(signal)
  })
  const opening = generate(engine, request, { signal: controller.signal })

  controller.abort()

  expect(await all(await opening)).toEqual([])
})

test('drops events after the signal has aborted', async () => {
  const controller = new AbortController()
  const engine = engineOf(async function* () {
    yield start
    yield hello
    yield end
  })
  const generation = await generate(engine, request, { signal: controller.signal })
  const read: GenerateEvent[] = []

  for await (const event of generation) {
    read.push(event)
    controller.abort()
  }

  expect(read).toEqual([start])
})

test('events that are requested together come in order', async () => {
  const engine = engineOf(async function* () {
    yield start
    yield hello
    yield end
  })
  const events = (await generate(engine, request, { signal: live() }))[Symbol.asyncIterator]()

  const steps = await Promise.all([events.next(), events.next(), events.next(), events.next()])

  expect(steps.map(({ value }) => value)).toEqual([start, hello, end, undefined])
})

test('a reader that leaves early closes the engine', async () => {
  let closed = false
  const engine = engineOf(async function* () {
    try {
      yield start
      for (;;) {
        await settle()
        yield hello
      }
    } finally {
      closed = true
    }
  })
  const generation = await generate(engine, request, { signal: live() })

  for await (const _event of generation) break

  expect(closed).toBe(true)
})

test('a reader that leaves before the first pull closes the engine', async () => {
  let closed = false
  const engine = engineOf(async function* () {
    try {
      yield start
      for (;;) {
        await settle()
        yield hello
      }
    } finally {
      closed = true
    }
  })
  const generation = await generate(engine, request, { signal: live() })

  await generation[Symbol.asyncIterator]().return?.()

  expect(closed).toBe(true)
})

test("an engine's failure while closing is ignored", async () => {
  const controller = new AbortController()
  const unhandled = vi.fn()
  process.on('unhandledRejection', unhandled)
  const engine = engineOf(async function* () {
    try {
      yield start
      yield end
    } finally {
      // biome-ignore lint/correctness/noUnsafeFinally: the engine fails while it closes.
      throw new Error('could not be freed')
    }
  })
  await generate(engine, request, { signal: controller.signal })

  controller.abort()
  await settle()

  process.off('unhandledRejection', unhandled)
  expect(unhandled).not.toHaveBeenCalled()
})

test('no listeners remain on a signal that outlives its answers', async () => {
  const controller = new AbortController()
  const engine = engineOf(async function* () {
    yield start
    yield end
  })

  for (let i = 0; i < 3; i++) await all(await generate(engine, request, { signal: controller.signal }))

  expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0)
})

test('no listeners remain on the signal of a call that a step rejects', async () => {
  const { signal } = new AbortController()
  const rejecting: CallStep = {
    name: 'rejecting',
    before: () => Promise.reject(new LlmError('permission', 'No.')),
  }

  await expect(generate(scriptedEngine(''), request, { signal }, [rejecting])).rejects.toThrow('No.')

  expect(getEventListeners(signal, 'abort')).toHaveLength(0)
})

describe('when the calls of a tenant are ended', () => {
  const reason = new LlmError('permission', 'Deleted.')
  const createPipeline = (engine: Engine, steps: readonly CallStep[] = []): CallPipeline =>
    new CallPipeline(engine, steps, new OutputBudget({ tenantBytes: 1e6, totalBytes: 1e6, stallMs: 60_000 }))
  const callOf = (id: string) =>
    ({ kind: 'generate', requests: [request], signal: live(), caller: { id, tenant: `of ${id}` } }) as const

  test('its answers end with the reason, and those of other tenants continue', async () => {
    const waiting = scriptedEngine('word '.repeat(100), { delayMs: 1 })
    const pipeline = createPipeline(waiting)
    const [ann, ben] = [
      await pipeline.generate(callOf('ann'), true),
      await pipeline.generate(callOf('ben'), true),
    ]
    const read = Promise.allSettled([all(ann), all(ben)])

    expect(await pipeline.endTenant('of ann', reason)).toBe(1)

    const [ended, other] = await read
    expect(ended).toMatchObject({ status: 'rejected', reason })
    expect(other).toMatchObject({ status: 'fulfilled' })
    expect(await pipeline.endTenant('of ben', reason)).toBe(0)
  })

  test.each(['enters', 'waits'])(
    'a call that %s does not reach the engine, and rejects with the reason',
    async (how) => {
      const calls: unknown[] = []
      const engine = engineOf(async function* (...call) {
        calls.push(call)
        yield end
      })
      const after: string[] = []
      let proceed = (): void => {}
      const blocked = new Promise<void>((resolve) => {
        proceed = resolve
      })
      const step: CallStep = {
        name: 'blocking',
        mayWait: how === 'waits',
        before: () => blocked,
        after: (_call, { status }) => void after.push(status),
      }
      const pipeline = createPipeline(engine, [step])
      const generation = pipeline.generate(callOf('ann'), false)
      await settle()

      expect(await pipeline.endTenant('of ann', reason)).toBe(1)
      proceed()

      await expect(generation).rejects.toBe(reason)
      expect(calls).toEqual([])
      expect(after).toEqual(['aborted', 'aborted'])
    },
  )

  test('a call with one result rejects with the reason', async () => {
    const pipeline = createPipeline(scriptedEngine(''))
    const embedding = pipeline.run({ ...callOf('ann'), kind: 'embed' }, (_, { signal }) =>
      aborted(signal).then(() => {
        throw signal.reason
      }),
    )
    await settle()

    expect(await pipeline.endTenant('of ann', reason)).toBe(1)

    await expect(embedding).rejects.toBe(reason)
  })
})

test('an answer waits for the ledger at most two seconds', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const engine = engineOf(async function* () {
    yield start
    yield hello
    yield end
  })
  const never = new Promise<never>(() => {})
  const limiter: RateLimiter = {
    reserve: async () => ({ limits: [], take: () => never, settle: () => never, release: () => never }),
    status: async () => [],
  }
  const limits = new LimitsStep({
    limiter,
    subjects: new CallerSubjects({}),
    modelSubjectOf: () => ({ id: 'model', limits: { requestsPerMinute: 1 } }),
    onError: () => {},
  })
  const generation = await generate(engine, request, { signal: live() }, [limits])

  const events = all(generation)
  await vi.advanceTimersByTimeAsync(2_000)

  expect(await events).toEqual([start, hello, end])
})
