/** More than one model: side by side while there is room, and in turns where there is not. */
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
  llm = await createLlm({ models: folder, local })
}
const ask = (model: string, maxTokens = 3) => llm.chat('Hello', { model, maxTokens, temperature: 0 })
const names = (): readonly string[] =>
  llm
    .loaded()
    .map(({ name }) => name)
    .sort()
const processOf = (model: string): number =>
  llm.loaded().find(({ name }) => name === `${model}:latest`)?.processId ?? Number.NaN
/** An answer that goes on until it is told to stop. */
function speak(model: string) {
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

test('several models answer at the same time, each in a process of its own', async () => {
  await start()

  const answers = await Promise.all(['a', 'b', 'c'].map((model) => ask(model)))

  expect(answers.map(({ usage }) => usage.outputTokens)).toEqual([3, 3, 3])
  expect(names()).toEqual(['a:latest', 'b:latest', 'c:latest'])
  expect(new Set(llm.loaded().map(({ processId }) => processId)).size).toBe(3)
})

test('one more than there may be takes the place of the one that was not used longest', async () => {
  await start({ maxLoadedModels: 2 })
  await ask('a')
  await ask('b')
  await ask('a')
  const gone = processOf('b')

  await ask('c')

  expect(names()).toEqual(['a:latest', 'c:latest'])
  await until(() => !isAlive(gone), 15_000)
})

test('a model that answers is not taken away, and whoever waits for its place gets it in the end', async () => {
  await start({ maxLoadedModels: 1 })
  const speaking = speak('a')
  await speaking.begun
  const busy = processOf('a')
  let isServed = false
  const waiting = ask('b').then((answer) => {
    isServed = true
    return answer
  })
  // It came later, and would keep the place for ever if it were let in.
  const later = ask('a')

  await llm.models.list()
  expect([isServed, isAlive(busy)]).toEqual([false, true])
  await speaking.stop()

  expect((await waiting).usage.outputTokens).toBe(3)
  expect((await later).usage.outputTokens).toBe(3)
})

test('who waits for a place holds up nobody whose model has one', async () => {
  await start({ maxLoadedModels: 2 })
  const speaking = [speak('a'), speak('b')]
  await Promise.all(speaking.map(({ begun }) => begun))
  const waiting = ask('c')

  // One of the two has to go for `c`; the other takes calls as before.
  const served = await Promise.race([ask('a'), ask('b')])

  expect(served.usage.outputTokens).toBe(3)
  for (const { stop } of speaking) await stop()
  expect((await waiting).usage.outputTokens).toBe(3)
})

test('who leaves while he waits for a place takes nobody’s away', async () => {
  await start({ maxLoadedModels: 1 })
  const speaking = speak('a')
  await speaking.begun
  const kept = processOf('a')
  const leaving = new AbortController()
  const waiting = llm.chat('Hello', { model: 'b', maxTokens: 1, signal: leaving.signal })
  const behind = ask('a')

  leaving.abort()

  await expect(waiting).rejects.toMatchObject({ name: 'AbortError' })
  expect((await behind).usage.outputTokens).toBe(3)
  await speaking.stop()
  expect(processOf('a')).toBe(kept)
})

test('closing refuses those that wait for a place', async () => {
  await start({ maxLoadedModels: 1 })
  const speaking = speak('a')
  await speaking.begun
  const waiting = ask('b')

  await llm.close()

  await expect(waiting).rejects.toMatchObject({ code: 'overloaded' })
  await expect(ask('a')).rejects.toMatchObject({ code: 'overloaded' })
  await speaking.stop().catch(() => {})
})

test('one of several is let go, and the others stay', async () => {
  await start()
  await Promise.all(['a', 'b'].map((model) => ask(model)))

  await llm.unload('a')

  expect(names()).toEqual(['b:latest'])
})
