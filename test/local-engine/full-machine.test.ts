/** On a machine with memory for one model, calls of another model wait while the first one is busy. */

import { readdirSync, readFileSync } from 'node:fs'
import { copyFile, mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createLlm, type Llm } from '@modelmount/core'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { noiseModel } from '../support/models.ts'
import { isAlive, noOrphan, until } from '../support/processes.ts'

const models = emptyFolder()
const machines = emptyFolder()
/** Each test has another one, since model processes wait a few seconds for another app before they exit. */
let runtimeDir: string
let apps: Llm[] = []

const openMachine = async (): Promise<void> => {
  runtimeDir = await mkdtemp(join(machines, 'run-'))
}

beforeAll(async () => {
  await openMachine()
  for (const name of ['a', 'b']) await copyFile(noiseModel, join(models, `${name}.gguf`))
  const llm = await startApp()
  process.env.FREE_BYTES = String(1e12)
  await llm.load('a')
  const [{ sizeBytes, processId } = { sizeBytes: 0, processId: 0 }] = llm.loaded()
  await llm.unload('a')
  await noOrphan([processId as number])
  // Too little memory to load the weights a second time.
  process.env.FREE_BYTES = String(sizeBytes + 2e6)
})

beforeEach(openMachine)

afterEach(async () => {
  for (const llm of apps) await llm.close()
  apps = []
})

afterAll(() =>
  until(() => readdirSync(machines).every((name) => statesIn(join(machines, name)).length === 0), 20_000),
)

async function startApp(): Promise<Llm> {
  const modelProcessPath = fileURLToPath(new URL('./full-machine.mjs', import.meta.url))
  const llm = await createLlm({
    models,
    local: { modelProcessPath, runtimeDir, parallel: 1, environment: ['FREE_BYTES'] },
  })
  apps.push(llm)
  return llm
}
/**
 * Keeps a model busy until `stop()`. The first answer ends after seconds, when the context is full. The others wait for it,
 * since the model has one slot.
 */
async function startAnswer(llm: Llm, model: string) {
  const leaving = new AbortController()
  const options = { model, stream: true, ignoreEos: true, signal: leaving.signal } as const
  const [first, ...queued] = Array.from({ length: 5 }, () => llm.chat('Hello', options))
  await first?.[Symbol.asyncIterator]().next()
  for (const answer of queued) readAll(answer).catch(() => {})
  return { stop: () => leaving.abort() }
}
async function readAll(answer: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of answer);
}
const ask = (llm: Llm, model: string, signal?: AbortSignal) =>
  llm.chat('Hello', { model, maxTokens: 3, ...(signal && { signal }) })
const processOf = (llm: Llm, model: string): number =>
  llm.loaded().find(({ name }) => name === `${model}:latest`)?.processId ?? Number.NaN
/** A model process that exits removes its file, at times between the two reads here. */
const statesIn = (folder: string): readonly string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .flatMap((name) => readIfPresent(join(folder, name)) ?? [])
    .map((text) => JSON.parse(text).state)
function readIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
    throw error
  }
}
const untilLoadWaits = (): Promise<void> => until(() => statesIn(runtimeDir).includes('waiting'), 15_000)

test('a call waits until the loaded model is idle, and then evicts it', async () => {
  const llm = await startApp()
  const running = await startAnswer(llm, 'a')
  const busy = processOf(llm, 'a')
  const waiting = ask(llm, 'b')
  await untilLoadWaits()
  expect(isAlive(busy)).toBe(true)

  running.stop()

  expect((await waiting).usage.outputTokens).toBe(3)
  expect(isAlive(busy)).toBe(false)
})

test('a call waits for the busy model of another app, and is served when that app closes', async () => {
  const [other, llm] = [await startApp(), await startApp()]
  await startAnswer(other, 'a')
  const waiting = ask(llm, 'b')
  await untilLoadWaits()

  await other.close()

  expect((await waiting).usage.outputTokens).toBe(3)
})

test('several waiting calls are served one after the other', async () => {
  const [one, other] = [await startApp(), await startApp()]
  const running = await startAnswer(one, 'a')
  const waiting = [ask(one, 'b'), ask(other, 'b')]
  await untilLoadWaits()
  const later = ask(other, 'a')

  running.stop()

  for (const answer of [...waiting, later]) expect((await answer).usage.outputTokens).toBe(3)
})

test('an aborted waiting call ends at once with its model process, and evicts no other model', async () => {
  const llm = await startApp()
  const running = await startAnswer(llm, 'a')
  const leaving = new AbortController()
  const waiting = ask(llm, 'b', leaving.signal)
  await untilLoadWaits()
  const [kept, unwanted] = [processOf(llm, 'a'), processOf(llm, 'b')]

  leaving.abort()

  await expect(waiting).rejects.toMatchObject({ name: 'AbortError' })
  await noOrphan([unwanted])
  running.stop()
  expect((await ask(llm, 'a')).usage.outputTokens).toBe(3)
  expect(processOf(llm, 'a')).toBe(kept)
})
