/** Several models run in parallel while there is room, and one after the other otherwise. */
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLlm, type Llm, type LocalOptions } from '@modelmount/core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { noiseModel } from '../support/models.ts'
import { isAlive, until } from '../support/processes.ts'

let folder: string
let llm: Llm

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'models-'))
  for (const name of ['a', 'b', 'c']) await copyFile(noiseModel, join(folder, `${name}.gguf`))
})

afterEach(() => llm.close())

afterAll(() => rm(folder, { recursive: true }))

const start = async (local: LocalOptions = {}): Promise<void> => {
  llm = await createLlm({ models: folder, local: { reloadCooldown: 0, ...local } })
}
const ask = (model: string, maxTokens = 3) => llm.chat('Hello', { model, maxTokens, temperature: 0 })
const names = (): readonly string[] =>
  llm
    .loaded()
    .map(({ name }) => name)
    .sort()
const processOf = (model: string): number =>
  llm.loaded().find(({ name }) => name === `${model}:latest`)?.processId ?? Number.NaN
/** Starts an answer that runs until `stop()`. */
function startAnswer(model: string) {
  const leaving = new AbortController()
  const stream = llm.chat('Hello', { model, stream: true, signal: leaving.signal })[Symbol.asyncIterator]()
  return {
    begun: stream.next(),
    stop: async () => {
      leaving.abort()
      while (!(await stream.next()).done);
    },
  }
}

test('several models answer at the same time, each in a separate process', async () => {
  await start()

  const answers = await Promise.all(['a', 'b', 'c'].map((model) => ask(model)))

  expect(answers.map(({ usage }) => usage.outputTokens)).toEqual([3, 3, 3])
  expect(names()).toEqual(['a:latest', 'b:latest', 'c:latest'])
  expect(new Set(llm.loaded().map(({ processId }) => processId)).size).toBe(3)
})

test('a model beyond maxLoadedModels evicts the least recently used one', async () => {
  await start({ maxLoadedModels: 2 })
  await ask('a')
  await ask('b')
  await ask('a')
  const gone = processOf('b')

  await ask('c')

  expect(names()).toEqual(['a:latest', 'c:latest'])
  await until(() => !isAlive(gone), 15_000)
})

test('a busy model is not evicted, and a waiting call of another model is served after it', async () => {
  await start({ maxLoadedModels: 1 })
  const running = startAnswer('a')
  await running.begun
  const busy = processOf('a')
  let isServed = false
  const waiting = ask('b').then((answer) => {
    isServed = true
    return answer
  })
  // This call waits, too. Otherwise later calls of `a` could keep it loaded forever.
  const later = ask('a')

  await llm.models.list()
  expect([isServed, isAlive(busy)]).toEqual([false, true])
  await running.stop()

  expect((await waiting).usage.outputTokens).toBe(3)
  expect((await later).usage.outputTokens).toBe(3)
})

test('a call that waits for its model to load does not delay calls of loaded models', async () => {
  await start({ maxLoadedModels: 2 })
  const running = [startAnswer('a'), startAnswer('b')]
  await Promise.all(running.map(({ begun }) => begun))
  const waiting = ask('c')

  // One of the two models is evicted for `c`. The other one serves calls as before.
  const served = await Promise.race([ask('a'), ask('b')])

  expect(served.usage.outputTokens).toBe(3)
  for (const { stop } of running) await stop()
  expect((await waiting).usage.outputTokens).toBe(3)
})

test('an aborted call that waited for its model to load evicts no other model', async () => {
  await start({ maxLoadedModels: 1 })
  const running = startAnswer('a')
  await running.begun
  const kept = processOf('a')
  const leaving = new AbortController()
  const waiting = llm.chat('Hello', { model: 'b', maxTokens: 1, signal: leaving.signal })
  const behind = ask('a')

  leaving.abort()

  await expect(waiting).rejects.toMatchObject({ name: 'AbortError' })
  expect((await behind).usage.outputTokens).toBe(3)
  await running.stop()
  expect(processOf('a')).toBe(kept)
})

test('close() rejects calls that wait for their model to load', async () => {
  await start({ maxLoadedModels: 1 })
  const running = startAnswer('a')
  await running.begun
  const waiting = ask('b')

  await llm.close()

  await expect(waiting).rejects.toMatchObject({ code: 'overloaded' })
  await expect(ask('a')).rejects.toMatchObject({ code: 'overloaded' })
  await running.stop().catch(() => {})
})

test('unload() of one model keeps the others loaded', async () => {
  await start()
  await Promise.all(['a', 'b'].map((model) => ask(model)))

  await llm.unload('a')

  expect(names()).toEqual(['b:latest'])
})
