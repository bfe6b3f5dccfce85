import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { emptyFolder } from '../../../../test/support/empty-folder.ts'
import { pacedEngine } from '../../../../test/support/paced-engine.ts'
import { createLlm } from '../create-llm.ts'
import type { Engine } from '../engine/engine.ts'
import { LlmError } from '../errors.ts'
import type { Llm } from '../llm.ts'
import type { LlmOptions } from '../options.ts'
import { scriptedEngine } from '../testing/scripted-engine.ts'
import type { ToolContext } from './chat/tools.ts'
import { admitTransfers } from './models/admitted-transfers.ts'
import { Shutdown } from './shutdown.ts'

const models = emptyFolder()
const words = 'one two three four five'
const cutShort = 'The server closed before the answer was complete. Send the request again.'
const opened: Llm[] = []
afterEach(async () => {
  vi.useRealTimers()
  for (const llm of opened.splice(0)) await llm.close()
})

/** An app whose answers wait until `engine.allow(events)`. An answer has seven events: start, five words, end. */
async function start(options: LlmOptions = {}) {
  const scripted = scriptedEngine(words)
  const engine = pacedEngine(scripted)
  const llm = await createLlm({ engine, models, ...options })
  opened.push(llm)
  return { engine, llm, scripted }
}

/** An app whose model calls the tool `pay`, and answers to its result. */
async function startToolLoop(): Promise<Llm> {
  const engine = scriptedEngine(({ input }) =>
    input.kind === 'chat' && input.messages.at(-1)?.role === 'tool'
      ? 'done'
      : [{ call: 'pay', arguments: {} }],
  )
  const { llm } = await start({ engine })
  return llm
}

const errorOf = async (work: Promise<unknown>): Promise<LlmError> =>
  LlmError.from(await work.then(() => undefined).catch((cause: unknown) => cause))

/** An engine that emits no more than this many events. */
function stoppingEngine(events: number): Engine {
  const scripted = scriptedEngine(words)
  const generate: Engine['generate'] = (request, call) => {
    const emitted = scripted.generate(request, call)[Symbol.asyncIterator]()
    let left = events
    const next = () => (left-- > 0 ? emitted.next() : new Promise<never>(() => {}))
    return {
      [Symbol.asyncIterator]: () => ({ next, return: async () => ({ value: undefined, done: true }) }),
    }
  }
  return { ...scripted, generate }
}

/** Reads a stream to its end. */
async function read(stream: AsyncIterable<string>): Promise<{ text: string; error?: LlmError }> {
  let text = ''
  try {
    for await (const piece of stream) text += piece
  } catch (cause) {
    return { text, error: LlmError.from(cause) }
  }
  return { text }
}

describe('a drain', () => {
  test('lets a running call of the app end, and rejects the next call', async () => {
    const { engine, llm, scripted } = await start()
    const running = llm.chat('Hi')
    await vi.waitUntil(() => scripted.running === 1)

    const closed = llm.close({ drain: '1h' })
    const refused = await errorOf(llm.chat('Again'))
    engine.allow(7)

    expect((await running).text).toBe(words)
    expect([refused.code, refused.details.retryAfterMs]).toEqual(['overloaded', 1_000])
    await closed
  })

  test('admits calls for the time of `admitFor`, while `isClosing` is already true', async () => {
    const { engine, llm } = await start()
    engine.allow(7)
    expect(llm.isClosing).toBe(false)

    const closed = llm.close({ admitFor: '1h', drain: '1h' })
    const { text } = await llm.chat('Hi')

    expect([llm.isClosing, text]).toEqual([true, words])
    await llm.close()
    await closed
    expect((await errorOf(llm.chat('Again'))).code).toBe('overloaded')
  })

  test('ends with the deadline: a reader gets what was generated, and then an error', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'shutdown-'))
    const database = join(folder, 'modelmount.db')
    const { llm } = await start({ database, engine: stoppingEngine(4) })
    const reading = llm.chat('Hi', { stream: true })[Symbol.asyncIterator]()
    expect((await reading.next()).value).toBe('one')

    const closed = llm.close({ drain: 1 })
    const { text, error } = await read({ [Symbol.asyncIterator]: () => reading })

    expect(text).toBe(' two three')
    expect([error?.code, error?.message]).toEqual(['overloaded', cutShort])
    await closed
    const later = await start({ database })
    expect(await later.llm.usage.calls()).toMatchObject([
      { status: 'failed', tokens: { output: 3 }, undeliveredTokens: 0 },
    ])
  })

  test('a second call shortens it, and cannot prolong it', async () => {
    const { llm, scripted } = await start()
    const running = read(llm.chat('Hi', { stream: true }))
    await vi.waitUntil(() => scripted.running === 1)

    const first = llm.close({ drain: '1h' })
    const second = llm.close({ drain: 1 })
    const third = llm.close({ drain: '1h' })

    const { error } = await running
    expect(error?.message).toBe(cutShort)
    await Promise.all([first, second, third])
  })

  test('runs the calls that wait in the queue', async () => {
    const { engine, llm, scripted } = await start({ maxAdmitted: 1 })
    const both = [llm.chat('first'), llm.chat('second')]
    await vi.waitUntil(() => scripted.running === 1)

    const closed = llm.close({ drain: '1h' })
    engine.allow(14)

    expect((await Promise.all(both)).map(({ text }) => text)).toEqual([words, words])
    await closed
  })

  test('rejects the calls that still wait in the queue at the deadline', async () => {
    const { llm, scripted } = await start({ maxAdmitted: 1 })
    const both = [errorOf(llm.chat('first')), errorOf(llm.chat('second'))]
    await vi.waitUntil(() => scripted.running === 1)

    await llm.close({ drain: 1 })

    expect((await Promise.all(both)).map(({ message }) => message)).toEqual([cutShort, cutShort])
    expect(scripted.requests).toHaveLength(1)
  })

  test('ends an embedding at the deadline', async () => {
    const embed = vi.fn<Engine['embed']>(
      (_request, { signal }) =>
        new Promise<never>((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason), { once: true })
        }),
    )
    const { llm } = await start({ engine: { ...scriptedEngine(''), embed } })
    const embedding = errorOf(llm.embed({ inputs: ['Hi'] }))
    await vi.waitUntil(() => embed.mock.calls.length === 1)

    await llm.close({ drain: 1 })

    expect((await embedding).message).toBe(cutShort)
  })

  test('lets a tool loop of llm.chat() end: its tools, and the answers to their results', async () => {
    const llm = await startToolLoop()
    let pay = (_result: string): void => {}
    const paid = new Promise<string>((resolve) => {
      pay = resolve
    })
    const execute = vi.fn(() => paid)
    const loop = llm.chat('Pay.', { tools: { pay: { execute } } })
    await vi.waitUntil(() => execute.mock.calls.length === 1)

    const closed = llm.close({ drain: '1h' })
    const refused = await errorOf(llm.chat('Again'))
    pay('paid')

    expect((await loop).text).toBe('done')
    expect(refused.code).toBe('overloaded')
    await closed
  })

  test('ends a tool loop at the deadline, and aborts its tools', async () => {
    const llm = await startToolLoop()
    let signal: AbortSignal | undefined
    const execute = vi.fn((_args: unknown, context: ToolContext) => {
      signal = context.signal
      return new Promise<string>(() => {})
    })
    const loop = errorOf(llm.chat('Pay.', { tools: { pay: { execute } } }))
    await vi.waitUntil(() => execute.mock.calls.length === 1)

    await llm.close({ drain: 1 })

    expect([(await loop).code, (await loop).message]).toEqual(['overloaded', cutShort])
    expect(LlmError.from(signal?.reason).message).toBe(cutShort)
  })

  test('does not wait for a stream of llm.chat() whose reader has left', async () => {
    const { engine, llm } = await start()
    engine.allow(7)
    for await (const _piece of llm.chat('Hi', { stream: true })) break

    await llm.close({ drain: '1h' })

    expect(llm.isClosing).toBe(true)
  })

  test('gives the running items of batches back at once', async () => {
    const { llm, scripted } = await start({ database: ':memory:' })
    await llm.batches.create([
      { custom_id: 'a', params: { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] } },
    ])
    await vi.waitUntil(() => scripted.running === 1)

    await llm.close({ drain: '1h' })

    expect(scripted.running).toBe(0)
  })

  test('rejects invalid options', async () => {
    const { llm } = await start()

    await expect(llm.close({ drain: 'soon' as '1s' })).rejects.toThrow('`drain`: Expected a duration')
    await expect(llm.close({ drain: '2h' })).rejects.toThrow(
      "Expected `drain` to be a duration of at most '1h'",
    )
    await expect(llm.close({ timeout: 1 } as object)).rejects.toThrow('Unknown option `timeout`')
    expect(llm.isClosing).toBe(false)
  })
})

describe('shutdown of other work', () => {
  const pipeline = { stopAdmitting: () => {}, stop: () => {}, whenIdle: async () => {} }
  const create = () => {
    const close = vi.fn(async () => {})
    return { close, shutdown: new Shutdown({ pipeline, stopBatches: async () => {}, close }) }
  }

  test('waits for an admitted request, and disconnects its client 5 s after the deadline', async () => {
    vi.useFakeTimers()
    const { close, shutdown } = create()
    const disconnect = vi.fn()
    shutdown.admit({ disconnect })

    const closed = shutdown.close({ admitMs: 0, drainMs: 1_000 })
    await vi.advanceTimersByTimeAsync(5_999)
    expect(disconnect).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(1)
    await closed

    expect([disconnect.mock.calls.length, close.mock.calls.length]).toEqual([1, 1])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('closes as soon as the last request is over, and admits no further one', async () => {
    vi.useFakeTimers()
    const { close, shutdown } = create()
    const leave = shutdown.admit({})

    const closed = shutdown.close({ admitMs: 0, drainMs: 1_000 })
    await vi.advanceTimersByTimeAsync(500)
    expect(() => shutdown.admit({})).toThrow('The server is closing.')
    expect(close).not.toHaveBeenCalled()
    leave()
    await closed

    expect(close).toHaveBeenCalledOnce()
    expect(vi.getTimerCount()).toBe(0)
  })

  test.each([
    ['ends without an error', async () => {}],
    [
      'rejects',
      async () => {
        throw new DOMException('aborted', 'AbortError')
      },
    ],
  ])('a pull that %s when it is aborted ends with the error of the shutdown', async (_how, onAbort) => {
    const { llm } = await start()
    const { shutdown } = create()
    const { pull } = admitTransfers(
      {
        ...llm.models,
        pull: async function* (_name, { signal } = {}) {
          yield { status: 'pulling' }
          await new Promise((resolve) => signal?.addEventListener('abort', resolve, { once: true }))
          await onAbort()
        },
      },
      shutdown,
      () => llm,
    )
    const seen: string[] = []
    const pulling = errorOf(
      (async () => {
        for await (const { status } of pull('tiny')) {
          seen.push(status)
          void shutdown.close({ admitMs: 0, drainMs: 1 })
        }
      })(),
    )

    expect((await pulling).message).toBe(cutShort)
    expect(seen).toEqual(['pulling'])
    await shutdown.close({ admitMs: 0, drainMs: 1 })
  })
})
