import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { pacedEngine } from '../../../../test/support/paced-engine.ts'
import { createLlm } from '../create-llm.ts'
import type { LoadedModel } from '../engine/engine.ts'
import { internals, type Llm } from '../llm.ts'
import { scriptedEngine } from '../testing/scripted-engine.ts'
import { publish } from './channels.ts'
import type { DiagnosedCall } from './events.ts'
import { LiveCalls } from './live-calls.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance', 'Date'] }))
afterEach(() => void vi.useRealTimers())

const readActivity = (llm: Llm) => llm[internals].liveCalls.activity()
const watchActivity = (llm: Llm): void => llm[internals].liveCalls.listen()

const call: DiagnosedCall = {
  ...{ id: 'call-1', kind: 'generate', dialect: 'openai', route: '/v1/chat/completions', requestId: 'r' },
  ...{ model: 'small', isKnownModel: false, alias: undefined, caller: 'ann', key: 'key-1', tenant: 'team' },
  ...{ isBackground: false, isBatchItem: false },
}
const loadedModel: LoadedModel = {
  ...{ name: 'small:latest', state: 'ready', contextSize: 4_096, sizeBytes: 1, gpuBytes: 0 },
  expiresAt: 'never',
}
const tokens = (outputTokens: number) => ({
  ...{ inputTokens: 9, reusedTokens: 4, cacheReadTokens: 0, cacheWriteTokens: { '5m': 0, '1h': 0 } },
  ...{ outputTokens, undeliveredTokens: 1 },
})

test('a call is queued, waits for its model, evaluates its prompt and decodes', () => {
  const llm = {}
  const models: LoadedModel[] = []
  const sources = { loaded: () => models, queues: () => [], replicas: () => [] }
  const liveCalls = new LiveCalls(() => llm, sources)
  liveCalls.listen()
  onTestFinished(() => liveCalls.close())
  let usage: ReturnType<typeof tokens> | undefined
  const phases: unknown[] = []
  const note = (): void => void phases.push(liveCalls.list().map(({ phase, model }) => `${phase} ${model}`))

  const received = { llm, call, usage: () => usage, header: undefined, request: {} as never }
  publish('modelmount:call:start', () => received)
  note()
  publish('modelmount:call:admitted', () => ({ llm, call: { ...call, model: 'small:latest' }, queueMs: 0 }))
  note()
  models.push({ ...loadedModel, state: 'loading' })
  note()
  models[0] = loadedModel
  note()
  publish('modelmount:call:first-token', () => ({ llm, call, firstTokenMs: 0 }))
  note()
  vi.advanceTimersByTime(2_000)
  usage = tokens(20)
  const [live] = liveCalls.list()
  publish('modelmount:call:end', () => ({ llm, call }) as never)
  note()

  expect(phases).toEqual([
    ...[['queued small'], ['loading small:latest'], ['loading small:latest'], ['prompt small:latest']],
    ...[['decoding small:latest'], []],
  ])
  expect(live).toMatchObject({
    ...{ id: 'call-1', caller: 'ann', key: 'key-1', ageMs: 2_000, startedAt: new Date(Date.now() - 2_000) },
    ...{ inputTokens: 9, reusedTokens: 4, outputTokens: 21, tokensPerSecond: 10 },
  })
})

async function start(): Promise<{ llm: Llm; engine: ReturnType<typeof pacedEngine> }> {
  const engine = pacedEngine(scriptedEngine('one two three four'))
  const llm = await createLlm({ engine, models: [] })
  onTestFinished(() => llm.close())
  return { llm, engine }
}

test('the calls of an app are there from their start to their end, with their tokens', async () => {
  const { llm, engine } = await start()
  watchActivity(llm)
  const other = await start()
  watchActivity(other.llm)
  const seen: number[] = []

  const stream = llm.chat('Hello', { model: 'tiny', stream: true, caller: { id: 'ann' } })
  engine.allow(100)
  for await (const _ of stream) seen.push(readActivity(llm).calls[0]?.outputTokens ?? -1)

  expect(seen.at(-1)).toBeGreaterThan(1)
  expect(readActivity(llm)).toMatchObject({ calls: [], callCount: 0, queues: [], models: [{ name: 'tiny' }] })
  expect(readActivity(other.llm).calls).toEqual([])
})

test('calls that fail or whose client leaves are gone', async () => {
  const { llm, engine } = await start()
  watchActivity(llm)
  const leaving = new AbortController()

  const left = llm.chat('Hello', { model: 'tiny', signal: leaving.signal })
  const failed = llm.chat('Hello', { model: 'tiny', caller: { id: 'ann', models: ['other'] } })
  await expect(failed).rejects.toMatchObject({ code: 'permission' })
  expect(readActivity(llm)).toMatchObject({ callCount: 1, calls: [{ caller: undefined }] })
  leaving.abort()
  engine.allow(100)

  await expect(left).rejects.toMatchObject({ name: 'AbortError' })
  expect(readActivity(llm).callCount).toBe(0)
})

test('nothing is collected before listen() and after the app has closed', async () => {
  const { llm, engine } = await start()
  engine.allow(100)

  for await (const _ of llm.chat('Hello', { model: 'tiny', stream: true }))
    expect(readActivity(llm).callCount).toBe(0)
  watchActivity(llm)
  await llm.close()
  publish('modelmount:call:start', () => ({ llm, call, usage: () => undefined }) as never)

  expect(llm[internals].liveCalls.list()).toEqual([])
})
