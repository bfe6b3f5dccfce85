import { afterEach, describe, expect, test, vi } from 'vitest'
import { emptyFolder } from '../../../../test/support/empty-folder.ts'
import { pacedEngine } from '../../../../test/support/paced-engine.ts'
import type { Caller } from '../accounts/auth/caller.ts'
import { createLlm } from '../create-llm.ts'
import type { Engine } from '../engine/engine.ts'
import type { GenerateEvent } from '../engine/events.ts'
import type { GenerateRequest } from '../engine/request.ts'
import { LlmError } from '../errors.ts'
import type { Llm } from '../llm.ts'
import type { LlmOptions } from '../options.ts'
import { type ScriptedEngine, scriptedEngine } from '../testing/scripted-engine.ts'
import type { CallEnd } from './call.ts'
import type { Generation } from './generation.ts'
import type { EndedCall, InterceptedCall, Interceptor } from './interceptor.ts'

const prices = { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } }
const asked = (more: Partial<GenerateRequest> = {}): GenerateRequest => ({
  model: 'tiny',
  input: { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] },
  ...more,
})
const folder = emptyFolder()
const opened: Llm[] = []
const log: { readonly error: object[]; readonly warn: object[] } = { error: [], warn: [] }
const logger = {
  warn: (details: object) => void log.warn.push(details),
  error: (details: object) => void log.error.push(details),
}

afterEach(async () => {
  vi.useRealTimers()
  for (const llm of opened.splice(0)) await llm.close()
  log.error.length = 0
  log.warn.length = 0
})

async function start(
  interceptors: readonly Interceptor[],
  options: LlmOptions = {},
): Promise<{ llm: Llm; engine: ScriptedEngine }> {
  const engine = (options.engine as ScriptedEngine | undefined) ?? scriptedEngine('one two three')
  const llm = await createLlm({ logger, ...options, engine, interceptors })
  opened.push(llm)
  return { llm, engine }
}

const textOf = (events: readonly GenerateEvent[]): string =>
  events.map((event) => (event.type === 'text' ? event.text : '')).join('')

async function readAll(generation: AsyncIterable<GenerateEvent>): Promise<GenerateEvent[]> {
  const events: GenerateEvent[] = []
  for await (const event of generation) events.push(event)
  return events
}

const errorOf = (promise: Promise<unknown>): Promise<LlmError> =>
  promise.then(
    () => expect.fail('The call was not rejected.'),
    (cause: unknown) => LlmError.from(cause),
  )

const isGenerate = (call: InterceptedCall): call is InterceptedCall<'generate'> => call.kind === 'generate'

/** Changes the request of each answer. */
const changing = (change: (request: GenerateRequest) => GenerateRequest): Interceptor => ({
  before: (call) => (isGenerate(call) ? change(call.request) : undefined),
})

/** Records the end of each call. */
function recording(): { readonly ends: [EndedCall, CallEnd][]; readonly interceptor: Interceptor } {
  const ends: [EndedCall, CallEnd][] = []
  return { ends, interceptor: { after: (call, end) => void ends.push([call, end]) } }
}

/** A `before` that waits until the test resolves it, or for the second promise forever. */
function gate(): {
  readonly interceptor: Interceptor
  readonly entered: Promise<InterceptedCall>
  open: () => void
} {
  let open = (): void => {}
  const opening = new Promise<void>((resolve) => {
    open = resolve
  })
  let enter: (call: InterceptedCall) => void = () => {}
  const entered = new Promise<InterceptedCall>((resolve) => {
    enter = resolve
  })
  return {
    interceptor: {
      before: async (call) => {
        enter(call)
        await opening
        return undefined
      },
    },
    entered,
    open: () => open(),
  }
}

describe('the order', () => {
  test('of `before` is that of the list, and events and `after` pass in reverse', async () => {
    const seen: string[] = []
    const named = (name: string): Interceptor => ({
      before: () => void seen.push(`before ${name}`) as undefined,
      mapEvents: () => (event) => {
        if (event.type === 'text') seen.push(`${name} ${event.text}`)
        return event.type === 'text' ? { ...event, text: `${event.text}${name}` } : event
      },
      after: () => void seen.push(`after ${name}`),
    })
    const { llm } = await start([named('a'), named('b')], { engine: scriptedEngine(['hi']) })

    const { text } = await llm.chat('Hi', { model: 'tiny' })

    expect(text).toBe('hiba')
    expect(seen).toEqual(['before a', 'before b', 'b hi', 'a hib', 'after b', 'after a'])
  })

  test('of a class is the same, and its methods keep `this`', async () => {
    class Counter {
      calls = 0
      before(): undefined {
        this.calls++
      }
      after(): void {
        this.calls++
      }
    }
    const counter = new Counter()
    const { llm } = await start([counter])

    await llm.chat('Hi', { model: 'tiny' })

    expect(counter.calls).toBe(2)
  })
})

describe('`before`', () => {
  test('gets the call, whose fields cannot be changed', async () => {
    const calls: InterceptedCall[] = []
    const { llm } = await start([{ before: (call) => void calls.push(call) as undefined }])
    const caller: Caller = {
      id: 'ann',
      tenant: 'team',
      models: ['tiny'],
      limits: { perEndUser: { concurrent: 3 } },
    }

    const generation = await llm.generate(asked(), { caller, endUser: 'u1', dialect: 'openai' })
    await readAll(generation)

    const [call] = calls as [InterceptedCall<'generate'>]
    expect(call).toEqual({
      id: generation.id,
      kind: 'generate',
      model: 'tiny:latest',
      request: asked(),
      index: 0,
      caller,
      tenant: 'team',
      endUser: 'u1',
      dialect: 'openai',
      isBatchItem: false,
      signal: expect.any(AbortSignal),
    })
    expect(() => Object.assign(call, { tenant: 'x' })).toThrow(TypeError)
    expect(() => Object.assign(call.request, { model: 'x' })).toThrow(TypeError)
    expect(() => Object.assign(call.caller?.limits?.perEndUser ?? {}, { concurrent: 9 })).toThrow(TypeError)
    expect(Object.isFrozen(call.caller?.models)).toBe(true)
    expect(Object.isFrozen(caller)).toBe(false)
  })

  test('can return another request, and the response still names the model of the caller', async () => {
    const { llm, engine } = await start([
      changing((request) => ({ ...request, model: 'other', maxTokens: 2 })),
      changing((request) => ({ ...request, stop: [request.model] })),
    ])

    const generation = await llm.generate(asked())

    expect(textOf(await readAll(generation))).toBe('one two')
    expect(engine.requests).toMatchObject([{ model: 'other', maxTokens: 2, stop: ['other'] }])
    expect(generation.model).toBe('tiny')
  })

  test('that returns nothing, or the request itself, keeps the object of the caller', async () => {
    const seen: unknown[] = []
    const scripted = scriptedEngine('one')
    const engine: Engine = {
      ...scripted,
      embed: (request, call) => {
        seen.push(request)
        return scripted.embed(request, call)
      },
    }
    const { llm } = await start([{ before: () => undefined }, { before: ({ request }) => request }], {
      engine,
    })
    const inputs = ['Hello']

    await llm.embed({ model: 'tiny', inputs })

    expect(seen).toEqual([{ model: 'tiny', inputs }])
    expect((seen[0] as { inputs: unknown }).inputs).toBe(inputs)
  })

  test('runs for each call that sends a text to a model, and not for loads', async () => {
    const seen: string[] = []
    const { llm } = await start([
      {
        before: ({ kind, model }) => void seen.push(`${kind} ${model}`) as undefined,
        after: ({ kind }) => void seen.push(`after ${kind}`),
      },
    ])

    await llm.embed({ model: 'tiny', inputs: ['a'] })
    await llm.rerank({ model: 'tiny', query: 'a', documents: ['a'] })
    await llm.countTokens(asked())
    await llm.render(asked())
    await llm.tokenize({ model: 'tiny', text: 'a' })
    await llm.detokenize({ model: 'tiny', tokens: [97] })
    await llm.load('tiny')
    await llm.unload('tiny')

    const kinds = ['embed', 'rerank', 'count', 'render', 'tokenize', 'detokenize']
    expect(seen).toEqual(kinds.flatMap((kind) => [`${kind} tiny:latest`, `after ${kind}`]))
  })

  test('can change the texts of embeddings, rankings, counts and tokens', async () => {
    const { llm } = await start([
      {
        before: ({ kind, request }) => {
          if (kind === 'embed') return { ...request, inputs: ['aaaa'] }
          if (kind === 'rerank') return { ...request, documents: ['a b'] }
          if (kind === 'tokenize') return { ...request, text: 'ab' }
          if (kind === 'detokenize') return { ...request, tokens: [97] }
          if (kind === 'render') return { ...request, input: { kind: 'text', prompt: ['changed'] } }
          return kind === 'count' ? { ...request, input: { kind: 'chat', messages: [] } } : undefined
        },
      },
    ])

    expect((await llm.embed({ model: 'tiny', inputs: ['a'] })).inputTokens).toBe(4)
    expect((await llm.rerank({ model: 'tiny', query: 'b', documents: ['a'] })).scores).toEqual([1])
    expect(await llm.tokenize({ model: 'tiny', text: 'x' })).toEqual([97, 98])
    expect(await llm.detokenize({ model: 'tiny', tokens: [98] })).toBe('a')
    expect(await llm.render(asked())).toBe('changed')
    expect(await llm.countTokens(asked())).toBe(0)
  })

  test('runs for each prompt of a completion, and must keep one model for all', async () => {
    const { llm, engine } = await start([
      {
        before: ({ kind, request, index }) =>
          kind === 'generate'
            ? { ...request, model: request.stop ? `m${index}` : 'other', maxTokens: index + 1 }
            : undefined,
      },
    ])

    const group = await llm.as({ id: 'ann' }).generateGroup([asked(), asked()])
    for (const answer of group.startInOrder()) await readAll(await answer)
    const mixed = await llm.as({ id: 'ann' }).generateGroup([asked({ stop: ['a'] }), asked({ stop: ['a'] })])
    const refusal = await errorOf(mixed.start(0))

    expect(engine.requests.map(({ model, maxTokens }) => [model, maxTokens])).toEqual([
      ['other', 1],
      ['other', 2],
    ])
    expect(refusal.code).toBe('internal')
    expect(String(refusal.cause)).toContain('the same `model` for all requests of one call')
  })
})

describe('a changed request', () => {
  test('is authorised again, before the next interceptor sees it', async () => {
    const seen: string[] = []
    const { llm, engine } = await start([
      changing((request) => ({ ...request, model: 'secret' })),
      { before: ({ model }) => void seen.push(model) as undefined },
    ])

    const refusal = await errorOf(llm.chat('Hi', { model: 'tiny', caller: { id: 'ann', models: ['tiny'] } }))
    await llm.chat('Hi', { model: 'tiny', caller: { id: 'bob', models: ['tiny', 'secret'] } })

    expect(refusal).toMatchObject({ code: 'permission' })
    expect(seen).toEqual(['secret'])
    expect(engine.requests.map(({ model }) => model)).toEqual(['secret'])
  })

  test('gets the Modelfile defaults of its own model, and not those of the model of the caller', async () => {
    const { llm, engine } = await start([changing((request) => ({ ...request, model: 'short' }))], {
      models: folder,
    })
    for await (const _ of llm.models.create({ name: 'long', from: 'tiny', parameters: { num_predict: 50 } }));
    for await (const _ of llm.models.create({ name: 'short', from: 'tiny', parameters: { stop: ['.'] } }));

    await llm.chat('Hi', { model: 'long' })

    expect(engine.requests).toMatchObject([{ model: 'short', stop: ['.'] }])
    expect(engine.requests[0]).not.toHaveProperty('maxTokens')
  })

  test('chooses how a model is loaded only for callers with the scope models', async () => {
    const { llm, engine } = await start([changing((request) => ({ ...request, load: { contextSize: 512 } }))])

    await llm.chat('Hi', { model: 'tiny', caller: { id: 'ann' } })
    await llm.chat('Hi', { model: 'tiny', caller: { id: 'bob', scopes: ['inference', 'models'] } })

    expect(engine.requests.map(({ load }) => load)).toEqual([{}, { contextSize: 512 }])
  })

  test('counts for the limits, the price and the row of its model', async () => {
    const { llm } = await start([changing((request) => ({ ...request, model: 'big' }))], {
      database: ':memory:',
      prices: {
        tiny: { inputPerMillionUsd: 1, outputPerMillionUsd: 1 },
        big: { inputPerMillionUsd: 5, outputPerMillionUsd: 7 },
      },
      modelLimits: { big: { requestsPerMinute: 1 }, tiny: { requestsPerMinute: 1 } },
    })

    await llm.chat('Hi', { model: 'tiny', caller: { id: 'ann' } })
    const refusal = await errorOf(llm.chat('Hi', { model: 'tiny', caller: { id: 'ann' } }))
    await llm.embed({ model: 'tiny', inputs: ['a'] })

    expect(refusal.code).toBe('rate_limit')
    expect(await llm.usage.calls()).toMatchObject([
      { model: 'tiny:latest', nanoUsd: 1_000 },
      { model: 'big', nanoUsd: 5_000 + 3 * 7_000 },
    ])
  })

  test('reserves its own tokens', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    const text = 'x'.repeat(4_000)
    const { llm } = await start([
      changing((request) => ({
        ...request,
        maxTokens: 100,
        input: { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text }] }] },
      })),
    ])
    const caller: Caller = { id: 'ann', limits: { requestsPerMinute: 9, tokensPerMinute: 10_000 } }

    const { limits } = await llm.generate(asked(), { caller })

    // 4,000 bytes and one message are estimated as 1,004 tokens.
    expect(limits).toEqual([
      { name: 'requests', limit: 9, remaining: 8, resetMs: expect.any(Number) },
      { name: 'tokens', limit: 10_000, remaining: 10_000 - 1_004 - 100, resetMs: expect.any(Number) },
    ])
  })

  test('reserves its own money', async () => {
    const { llm } = await start(
      [changing((request) => ({ ...request, maxTokens: request.maxTokens === 1 ? 500 : 1 }))],
      {
        database: ':memory:',
        prices,
      },
    )
    const caller: Caller = { id: 'ann', spendingLimit: { usd: 100_000 / 1e9, period: 'day' } }

    expect((await errorOf(llm.chat('Hi', { model: 'tiny', caller, maxTokens: 1 }))).code).toBe('quota')
    await llm.chat('Hi', { model: 'tiny', caller, maxTokens: 500 })

    expect(await llm.usage.calls()).toMatchObject([{ tokens: { input: 1, output: 1 } }])
  })

  test('gets at most the output tokens of its caller', async () => {
    const { llm, engine } = await start([changing((request) => ({ ...request, maxTokens: 900 }))])
    const caller: Caller = { id: 'ann', limits: { maxOutputTokens: 2 } }

    await llm.chat('Hi', { model: 'tiny', caller })

    expect(engine.requests).toMatchObject([{ maxTokens: 2 }])
  })
})

describe('limits', () => {
  test('of requests and of concurrent calls are checked before interceptors run', async () => {
    let runs = 0
    const blocked = gate()
    const { llm } = await start([{ before: () => void runs++ as undefined }, blocked.interceptor])
    const one: Caller = { id: 'ann', limits: { concurrent: 1 } }
    const rare: Caller = { id: 'bob', limits: { requestsPerMinute: 1, perEndUser: { requestsPerMinute: 5 } } }
    const first = llm.chat('Hi', { model: 'tiny', caller: one })
    await blocked.entered

    expect((await errorOf(llm.chat('Hi', { model: 'tiny', caller: one }))).code).toBe('rate_limit')
    blocked.open()
    await first
    await llm.chat('Hi', { model: 'tiny', caller: rare })
    expect((await errorOf(llm.chat('Hi', { model: 'tiny', caller: rare }))).code).toBe('rate_limit')

    expect(runs).toBe(2)
  })

  test('get everything back when an interceptor refuses the call, and the ledger gets no row', async () => {
    const { llm, engine } = await start(
      [
        {
          before: ({ request }) => {
            if ('maxTokens' in request) throw new LlmError('permission', 'Not today.')
          },
        },
      ],
      { database: ':memory:', prices },
    )
    const caller: Caller = {
      id: 'ann',
      limits: { requestsPerMinute: 1, tokensPerMinute: 1_100, concurrent: 1, perEndUser: { concurrent: 1 } },
      spendingLimit: { usd: 1, period: 'day' },
    }

    for (let count = 0; count < 3; count++)
      expect(await errorOf(llm.chat('Hi', { model: 'tiny', caller, maxTokens: 9 }))).toMatchObject({
        code: 'permission',
        message: 'Not today.',
      })
    expect(await llm.usage.calls()).toEqual([])
    await llm.chat('Hi', { model: 'tiny', caller })

    expect(engine.requests).toHaveLength(1)
    expect(log.error).toEqual([])
  })

  test('of tokens that refuse the call behind interceptors give its request back', async () => {
    const { llm } = await start([{ before: () => undefined }])
    const caller: Caller = { id: 'ann', limits: { requestsPerMinute: 2, tokensPerMinute: 1_030 } }
    await llm.chat('Hi', { model: 'tiny', caller })

    expect((await errorOf(llm.chat('Hi', { model: 'tiny', caller }))).details.exceeded).toBe('tokens')
    await llm.chat('Hi', { model: 'tiny', caller, maxTokens: 1 })

    expect((await errorOf(llm.chat('Hi', { model: 'tiny', caller, maxTokens: 1 }))).details.exceeded).toBe(
      'requests',
    )
  })

  test('are settled to the actual usage, as without interceptors', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    const { llm } = await start([{ after: () => {} }])
    const caller: Caller = {
      id: 'ann',
      limits: { requestsPerMinute: 9, tokensPerMinute: 2_000, tokensPerDay: 9_000 },
    }

    await llm.chat('Hi', { model: 'tiny', caller })

    expect(await llm.limits.of(caller)).toMatchObject([
      { name: 'requests', remaining: 8 },
      { name: 'tokens', remaining: 1_996 },
      { name: 'tokens', remaining: 8_996, windowMs: 86_400_000 },
    ])
  })
})

describe('while `before` waits', () => {
  test('the call holds no permit of the engine', async () => {
    const blocked = gate()
    const { llm } = await start(
      [{ before: (call) => (call.caller?.id === 'slow' ? blocked.interceptor.before?.(call) : undefined) }],
      { maxAdmitted: 1 },
    )
    const slow = llm.chat('Hi', { model: 'tiny', caller: { id: 'slow' } })
    await blocked.entered

    expect((await llm.chat('Hi', { model: 'tiny', caller: { id: 'quick' } })).text).toBe('one two three')

    blocked.open()
    await slow
  })

  test('a stream opens after 5 s, and continues when `before` resolves', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const blocked = gate()
    const { llm } = await start([blocked.interceptor])
    let generation: Generation | undefined
    void llm.generate(asked(), { stream: true }).then((opened) => {
      generation = opened
    })
    await blocked.entered

    await vi.advanceTimersByTimeAsync(4_999)
    expect(generation).toBeUndefined()
    await vi.advanceTimersByTimeAsync(1)
    blocked.open()

    expect(textOf(await readAll(generation as unknown as Generation))).toBe('one two three')
  })

  test.each(['generate', 'embed'] as const)('a client that leaves ends its call: %s', async (kind) => {
    const blocked = gate()
    const { ends, interceptor } = recording()
    const { llm, engine } = await start([interceptor, blocked.interceptor], { database: ':memory:' })
    const left = new AbortController()
    const caller: Caller = { id: 'ann', limits: { concurrent: 1 } }
    const options = { caller, signal: left.signal }
    const call =
      kind === 'generate'
        ? llm.generate(asked(), options).then(readAll)
        : llm.embed({ model: 'tiny', inputs: ['a'] }, options)
    const { signal } = await blocked.entered

    left.abort()

    if (kind === 'generate') expect(await call).toEqual([])
    else await expect(call).rejects.toMatchObject({ name: 'AbortError' })
    expect(signal.aborted).toBe(true)
    expect(ends).toMatchObject([[{ kind }, { status: 'aborted', error: undefined, usage: undefined }]])
    expect(engine.requests).toEqual([])
    expect(log.error).toEqual([])
    expect(await llm.usage.calls()).toEqual([])
    blocked.open()
    await llm.chat('Hi', { model: 'tiny', caller })
  })

  test('a revoked key ends its call with the reason', async () => {
    const blocked = gate()
    const { ends, interceptor } = recording()
    const { llm, engine } = await start([interceptor, blocked.interceptor], { database: ':memory:' })
    const { key } = await llm.keys.create({ name: 'app' })
    const caller: Caller = { id: key.id, key: { id: key.id, name: 'app' } }
    const call = llm.chat('Hi', { model: 'tiny', caller })
    await blocked.entered

    await llm.keys.revoke(key.id)

    const refusal = await errorOf(call)
    expect(refusal.code).toBe('authentication')
    expect(ends).toMatchObject([[{ caller }, { status: 'aborted', error: refusal }]])
    expect(engine.requests).toEqual([])
  })

  test('a closing app ends its call, and `after` runs once', async () => {
    const blocked = gate()
    const { ends, interceptor } = recording()
    const { llm, engine } = await start([interceptor, blocked.interceptor])
    const call = errorOf(llm.chat('Hi', { model: 'tiny' }))
    await blocked.entered

    await llm.close()
    blocked.open()

    expect((await call).code).toBe('overloaded')
    expect(ends).toMatchObject([[{ kind: 'generate' }, { status: 'aborted' }]])
    expect(engine.requests).toEqual([])
  })
})

describe('`after`', () => {
  test('gets the usage, the finish reason and the duration of an answer', async () => {
    const { ends, interceptor } = recording()
    const { llm } = await start([interceptor])

    const generation = await llm.generate(asked({ maxTokens: 2 }), { caller: { id: 'ann' } })
    await readAll(generation)

    expect(ends).toEqual([
      [
        {
          id: generation.id,
          kind: 'generate',
          model: 'tiny:latest',
          requests: [asked({ maxTokens: 2 })],
          caller: { id: 'ann' },
          tenant: 'ann',
          endUser: undefined,
          dialect: undefined,
          isBatchItem: false,
        },
        {
          status: 'ended',
          error: undefined,
          finishReasons: ['length'],
          timings: [{ loadMs: 0, promptMs: expect.any(Number), generateMs: expect.any(Number) }],
          usage: expect.objectContaining({ inputTokens: 1, outputTokens: 2, undeliveredTokens: 0 }),
          durationMs: expect.any(Number),
        },
      ],
    ])
  })

  test('gets the error of a call that fails, is refused later, or is left', async () => {
    const { ends, interceptor } = recording()
    const broken = new LlmError('upstream', 'It broke.')
    const { llm } = await start(
      [
        interceptor,
        {
          before: ({ caller }) => {
            if (caller?.id === 'refused') throw new LlmError('permission', 'No.')
            if (caller?.id === 'failing') throw new TypeError('Oops.')
          },
        },
      ],
      { engine: scriptedEngine(['one ', 'two ', broken]), database: ':memory:', prices },
    )
    const ask = (caller: Caller) => llm.chat('Hi', { model: 'tiny', caller })

    await errorOf(ask({ id: 'broken' }))
    await errorOf(ask({ id: 'refused' }))
    await errorOf(ask({ id: 'failing' }))
    await errorOf(ask({ id: 'poor', spendingLimit: { usd: 1e-9, period: 'day' } }))
    const left = await llm.generate(asked(), { caller: { id: 'left' } })
    const events = left[Symbol.asyncIterator]()
    await events.next()
    await events.next()
    await events.return?.()

    expect(
      ends.map(([{ caller }, { status, error, finishReasons }]) => [
        caller?.id,
        status,
        error?.code,
        finishReasons,
      ]),
    ).toEqual([
      ['broken', 'failed', 'upstream', [undefined]],
      ['refused', 'failed', 'permission', [undefined]],
      ['failing', 'failed', 'internal', [undefined]],
      ['poor', 'failed', 'quota', [undefined]],
      ['left', 'aborted', undefined, [undefined]],
    ])
    expect(ends[0]?.[1].usage).toMatchObject({ inputTokens: 1, outputTokens: 2 })
    expect(ends[4]?.[1].usage).toMatchObject({ inputTokens: 1, outputTokens: 1 })
  })

  test('does not run for a call that is refused before it reaches the interceptor', async () => {
    const { ends, interceptor } = recording()
    const { llm } = await start([
      {
        before: ({ caller }) => {
          if (caller?.id === 'ann') throw new LlmError('permission', 'No.')
        },
      },
      interceptor,
    ])

    await errorOf(llm.chat('Hi', { model: 'tiny', caller: { id: 'ann' } }))
    await errorOf(llm.chat('Hi', { model: 'tiny', caller: { id: 'bob', models: [] } }))

    expect(ends).toEqual([])
  })

  test('runs once for a call with several prompts, with the sum of their usage', async () => {
    const { ends, interceptor } = recording()
    const { llm } = await start([interceptor])
    const group = await llm.as({ id: 'ann' }).generateGroup([asked({ maxTokens: 1 }), asked()])

    for (const answer of group.startInOrder()) await readAll(await answer)

    expect(ends).toMatchObject([
      [
        { requests: [{ maxTokens: 1 }, {}] },
        { usage: { inputTokens: 2, outputTokens: 4 }, finishReasons: ['length', 'stop'] },
      ],
    ])
  })

  test('that throws or rejects is logged, and the call ends as usual', async () => {
    const { ends, interceptor } = recording()
    const { llm } = await start([
      interceptor,
      { name: 'audit', after: () => Promise.reject(new LlmError('quota', 'The disk is full.')) },
      {
        after: () => {
          throw new Error('Oops.')
        },
      },
    ])

    expect((await llm.chat('Hi', { model: 'tiny' })).text).toBe('one two three')

    expect(ends).toHaveLength(1)
    expect(log.error.map((details) => String((details as { err: Error }).err.cause))).toEqual([
      'Error: `interceptors[2].after` failed: Oops.',
      'Error: `interceptors[1].after` ("audit") failed: The disk is full.',
    ])
  })

  test.each(['generate', 'embed'])('that hangs delays the end by 2 s: %s', async (kind) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    let reach = (): void => {}
    const reached = new Promise<void>((resolve) => {
      reach = resolve
    })
    const hanging: Interceptor = {
      after: () => {
        reach()
        return new Promise(() => {})
      },
    }
    const { llm } = await start([hanging])
    let hasEnded = false
    const call =
      kind === 'generate' ? llm.chat('Hi', { model: 'tiny' }) : llm.embed({ model: 'tiny', inputs: ['a'] })
    void call.then(() => {
      hasEnded = true
    })
    await reached

    await vi.advanceTimersByTimeAsync(1_999)
    expect(hasEnded).toBe(false)
    await vi.advanceTimersByTimeAsync(1)

    await call
  })
})

describe('an interceptor that fails', () => {
  test('in `before` refuses the call with `internal`, and its error is logged once', async () => {
    const { llm } = await start([
      { name: 'search', before: () => Promise.reject(new Error('The index is gone.')) },
    ])

    const refusal = await errorOf(llm.chat('Hi', { model: 'tiny' }))

    expect(refusal).toMatchObject({
      code: 'internal',
      message: 'An interceptor of the app failed. The log of the app says why.',
    })
    expect(String(refusal.cause)).toBe(
      'Error: `interceptors[0].before` ("search") failed: The index is gone.',
    )
    expect(log.error).toEqual([expect.objectContaining({ err: refusal })])
  })

  test.each<[what: string, returned: unknown, message: string]>([
    ['a text', 'Hi', "request: expected an object, got 'Hi'."],
    ['no model', { input: asked().input }, 'model: expected a string, got nothing.'],
    ['no input', { model: 'tiny' }, "input: expected { kind: 'chat', messages } or"],
    ['messages', { model: 'tiny', messages: [] }, "Did you mean input: { kind: 'chat', messages }?"],
    [
      'no list of messages',
      { model: 'tiny', input: { kind: 'chat', messages: 'Hi' } },
      "input.messages: expected a list, got 'Hi'.",
    ],
    [
      'a message with a text',
      { model: 'tiny', input: { kind: 'chat', messages: [{ role: 'user', content: 'Hi' }] } },
      "input.messages[0].content: expected a list such as [{ type: 'text', text: 'Hi' }], got 'Hi'.",
    ],
  ])('because it returns %s is told what to return', async (_what, returned, message) => {
    const { llm, engine } = await start([{ before: () => returned as GenerateRequest }])

    const refusal = await errorOf(llm.chat('Hi', { model: 'tiny' }))

    expect(refusal.code).toBe('internal')
    expect(String(refusal.cause)).toContain(message)
    expect(engine.requests).toEqual([])
  })

  test.each<[when: string, interceptor: Interceptor]>([
    [
      'creates its mapper',
      {
        mapEvents: () => {
          throw new Error('Oops.')
        },
      },
    ],
    [
      'maps an event',
      {
        mapEvents: () => (event) => {
          if (event.type === 'text') throw new Error('Oops.')
          return event
        },
      },
    ],
    [
      'maps the end',
      {
        mapEvents: () => (event) => {
          if (event.type === 'end') throw new Error('Oops.')
          return event
        },
      },
    ],
    ['drops the end', { mapEvents: () => (event) => (event.type === 'end' ? undefined : event) }],
  ])('while it %s ends the answer with `internal`, and frees its permit', async (_when, interceptor) => {
    const { llm } = await start([interceptor], { database: ':memory:', maxAdmitted: 1 })

    const failures = [
      await errorOf(llm.chat('Hi', { model: 'tiny', caller: { id: 'ann' } })),
      await errorOf(llm.chat('Hi', { model: 'tiny', caller: { id: 'ann' } })),
    ]

    expect(failures.map(({ code }) => code)).toEqual(['internal', 'internal'])
    expect(log.error).toEqual(
      failures.map((err) => expect.objectContaining({ err, model: expect.any(String) })),
    )
    expect(await llm.usage.calls()).toMatchObject([{ status: 'failed' }, { status: 'failed' }])
  })

  test('with an `LlmError` while it maps ends the answer with this error', async () => {
    const { llm } = await start([
      {
        mapEvents: () => (event) => {
          if (event.type === 'text') throw new LlmError('permission', 'Stopped.')
          return event
        },
      },
    ])

    expect(await errorOf(llm.chat('Hi', { model: 'tiny' }))).toMatchObject({
      code: 'permission',
      message: 'Stopped.',
    })
    expect(log.error).toEqual([])
  })
})

describe('usage', () => {
  /** Withholds all text until a piece with a full stop. */
  const sentences: Interceptor = {
    mapEvents: () => {
      let held = ''
      return (event) => {
        if (event.type !== 'text')
          return event.type === 'end' && held ? [{ type: 'text', text: held, tokens: 0 }, event] : event
        held += event.text
        if (!held.endsWith('.')) return
        const text = held
        held = ''
        return { ...event, text }
      }
    },
  }

  test('of a mapped answer is that of the engine', async () => {
    const { llm } = await start([sentences], {
      engine: scriptedEngine(['A ', 'b.', 'C ', 'd']),
      database: ':memory:',
      prices,
    })

    const events = await readAll(await llm.generate(asked(), { caller: { id: 'ann' } }))

    expect(events.flatMap((event) => (event.type === 'text' ? [[event.text, event.tokens]] : []))).toEqual([
      ['A b.', 2],
      ['C d', 2],
    ])
    expect(events.at(-1)).toMatchObject({ usage: { outputTokens: 4 } })
    expect(await llm.usage.calls()).toMatchObject([
      { tokens: { input: 1, output: 4 }, undeliveredTokens: 0, nanoUsd: 1_000 + 4 * 2_000 },
    ])
  })

  test('of a reader that leaves is what it was handed, and withheld text is undelivered', async () => {
    const engine = pacedEngine(scriptedEngine(['A ', 'b.', 'C ', 'd', '.']))
    const { llm } = await start([sentences], { engine, database: ':memory:', prices })
    const caller: Caller = { id: 'ann', limits: { tokensPerMinute: 5_000 } }
    engine.allow(5) // The start, and four pieces.
    const left = new AbortController()
    const generation = await llm.generate(asked(), { caller, stream: true, signal: left.signal })
    const events = generation[Symbol.asyncIterator]()
    await events.next()
    expect((await events.next()).value).toMatchObject({ text: 'A b.', tokens: 2 })
    await new Promise(setImmediate) // Until the engine has generated the rest.

    left.abort()
    expect(await events.next()).toMatchObject({ done: true })

    expect(await llm.usage.calls()).toMatchObject([
      {
        status: 'aborted',
        tokens: { input: 1, output: 2 },
        undeliveredTokens: 2,
        nanoUsd: 1_000 + 2 * 2_000,
      },
    ])
    // The limits count everything that was generated.
    expect((await llm.limits.of(caller))[0]?.remaining).toBeGreaterThanOrEqual(4_995)
  })

  test('of a call that an interceptor ends in the middle is what the reader got', async () => {
    const { llm } = await start(
      [
        {
          mapEvents: () => (event) => {
            if (event.type === 'text' && event.text === 'c') throw new LlmError('permission', 'No.')
            return event
          },
        },
      ],
      { engine: scriptedEngine(['a', 'b', 'c', 'd']), database: ':memory:', prices },
    )

    await errorOf(llm.chat('Hi', { model: 'tiny', caller: { id: 'ann' } }))

    expect(await llm.usage.calls()).toMatchObject([
      { status: 'failed', tokens: { output: 2 }, undeliveredTokens: 1 },
    ])
  })
})

test('a mapper is created for each answer, and gets its request with all changes', async () => {
  const seen: unknown[] = []
  const { llm } = await start([
    changing((request) => ({ ...request, stop: ['x'] })),
    {
      mapEvents: ({ request, index }) => {
        seen.push([index, request.stop])
        return index === 0 ? undefined : (event) => (event.type === 'text' ? { ...event, text: '*' } : event)
      },
    },
  ])
  const group = await llm.as({ id: 'ann' }).generateGroup([asked(), asked()])

  const texts: string[] = []
  for (const answer of group.startInOrder()) texts.push(textOf(await readAll(await answer)))

  expect(seen).toEqual([
    [0, ['x']],
    [1, ['x']],
  ])
  expect(texts).toEqual(['one two three', '***'])
})

test('batches run through interceptors, and store mapped text', async () => {
  const { ends, interceptor } = recording()
  const { llm } = await start(
    [
      interceptor,
      changing((request) => ({ ...request, maxTokens: 2 })),
      {
        mapEvents: () => (event) =>
          event.type === 'text' ? { ...event, text: event.text.toUpperCase() } : event,
      },
    ],
    { database: ':memory:' },
  )
  const messages = [{ role: 'user', content: 'Hi' }]
  const { id } = await llm.batches.create(
    [{ custom_id: 'a', params: { model: 'tiny', max_tokens: 50, messages } }],
    {
      caller: { id: 'ann' },
    },
  )

  for await (const _ of llm.batches.watch(id));
  const results: unknown[] = []
  for await (const { line } of llm.batches.results(id)) results.push(line)

  expect(results).toMatchObject([{ result: { message: { content: [{ text: 'ONE TWO' }] } } }])
  expect(ends).toMatchObject([
    [{ isBatchItem: true, caller: { id: 'ann' }, dialect: 'anthropic' }, { status: 'ended' }],
  ])
})
