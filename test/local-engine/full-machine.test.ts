/** A machine with memory for one model: while that is busy, whoever wants another one waits. */

import { readdirSync, readFileSync } from 'node:fs'
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createLlm, type Llm } from '@modelmount/core'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { noiseModel } from '../support/models.ts'
import { isAlive, noOrphan, until } from '../support/processes.ts'

const models = emptyFolder()
const runtimeDir = emptyFolder()
let apps: Llm[] = []

beforeAll(async () => {
  for (const name of ['a', 'b']) await copyFile(noiseModel, join(models, `${name}.gguf`))
  const llm = await startApp()
  process.env.FREE_BYTES = String(1e12)
  await llm.load('a')
  const [{ sizeBytes, processId } = { sizeBytes: 0, processId: 0 }] = llm.loaded()
  await llm.unload('a')
  await noOrphan([processId as number])
  // Less than its weights a second time.
  process.env.FREE_BYTES = String(sizeBytes + 2e6)
})

afterEach(async () => {
  for (const llm of apps) await llm.close()
  apps = []
  await until(() => states().length === 0, 20_000)
})

async function startApp(): Promise<Llm> {
  const modelProcessPath = fileURLToPath(new URL('./full-machine.mjs', import.meta.url))
  const llm = await createLlm({ models, local: { modelProcessPath, runtimeDir, parallel: 1 } })
  apps.push(llm)
  return llm
}
/** An answer that goes on until it is told to stop. */
async function speak(llm: Llm, model: string) {
  const leaving = new AbortController()
  const stream = llm.chat('Hello', { model, stream: true, signal: leaving.signal })[Symbol.asyncIterator]()
  await stream.next()
  return { stop: () => leaving.abort() }
}
const ask = (llm: Llm, model: string, signal?: AbortSignal) =>
  llm.chat('Hello', { model, maxTokens: 3, ...(signal && { signal }) })
const processOf = (llm: Llm, model: string): number =>
  llm.loaded().find(({ name }) => name === `${model}:latest`)?.processId ?? Number.NaN
const states = (): readonly string[] =>
  readdirSync(runtimeDir)
    .filter((name) => name.endsWith('.json'))
    .map((name) => JSON.parse(readFileSync(join(runtimeDir, name), 'utf8')).state)
const somebodyWaits = (): Promise<void> => until(() => states().includes('waiting'), 15_000)

test('a call waits until the model that has the memory rests', async () => {
  const llm = await startApp()
  const speaking = await speak(llm, 'a')
  const busy = processOf(llm, 'a')
  const waiting = ask(llm, 'b')
  await somebodyWaits()
  expect(isAlive(busy)).toBe(true)

  speaking.stop()

  expect((await waiting).usage.outputTokens).toBe(3)
  expect(isAlive(busy)).toBe(false)
})

test('a call waits for the busy model of another app, and when that goes with its app', async () => {
  const [other, llm] = [await startApp(), await startApp()]
  await speak(other, 'a')
  const waiting = ask(llm, 'b')
  await somebodyWaits()

  await other.close()

  expect((await waiting).usage.outputTokens).toBe(3)
})

test('several that wait get their turn one after the other', async () => {
  const [one, other] = [await startApp(), await startApp()]
  const speaking = await speak(one, 'a')
  const waiting = [ask(one, 'b'), ask(other, 'b')]
  await somebodyWaits()
  const later = ask(other, 'a')

  speaking.stop()

  for (const answer of [...waiting, later]) expect((await answer).usage.outputTokens).toBe(3)
})

test('who leaves while he waits is gone at once, with the process that was to be his, and takes nobody’s place', async () => {
  const llm = await startApp()
  const speaking = await speak(llm, 'a')
  const leaving = new AbortController()
  const waiting = ask(llm, 'b', leaving.signal)
  await somebodyWaits()
  const [kept, unwanted] = [processOf(llm, 'a'), processOf(llm, 'b')]

  leaving.abort()

  await expect(waiting).rejects.toMatchObject({ name: 'AbortError' })
  await noOrphan([unwanted])
  speaking.stop()
  expect((await ask(llm, 'a')).usage.outputTokens).toBe(3)
  expect(processOf(llm, 'a')).toBe(kept)
})
