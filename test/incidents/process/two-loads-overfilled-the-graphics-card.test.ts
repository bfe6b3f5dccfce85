/**
 * Two models were loaded at the same time, and both measured the free memory of the graphics card before the
 * other one used it. One load failed. Others ended up on the CPU in silence, beside idle models on the card.
 */
import { copyFile, mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createLlm, type Llm } from '@modelmount/core'
import type { LoadedModel } from '@modelmount/core/engine'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import { afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'
import { listen } from '../../support/listen.ts'
import { noiseModel } from '../../support/models.ts'
import { isAlive, noOrphan } from '../../support/processes.ts'

const models = emptyFolder()
const machines = emptyFolder()
let runtimeDir: string
let apps: Llm[] = []
let log: string[] = []

beforeAll(async () => {
  for (const name of ['a', 'b']) await copyFile(noiseModel, join(models, `${name}.gguf`))
})

beforeEach(async () => {
  runtimeDir = await mkdtemp(join(machines, 'run-'))
  process.env.CARD = await mkdtemp(join(machines, 'card-'))
  process.env.CARD_DELAY = '0'
})

afterEach(async () => {
  const running = apps.flatMap((llm) => llm.loaded().flatMap(({ processId }) => processId ?? []))
  for (const llm of apps) await llm.close()
  apps = []
  log = []
  await noOrphan(running)
})

async function startApp(gpuLayers: 'auto' | 'max' = 'auto'): Promise<Llm> {
  const modelProcessPath = fileURLToPath(new URL('../../local-engine/full-card.mjs', import.meta.url))
  const local = { modelProcessPath, runtimeDir, parallel: 1, gpuLayers, environment: ['CARD', 'CARD_DELAY'] }
  const ignore = (): void => {}
  const logger = { error: ignore, warn: (_details: object, message: string) => log.push(message) }
  const llm = await createLlm({ models, local, logger })
  apps.push(llm)
  return llm
}
const ask = (llm: Llm, model: string) => llm.chat('Hello', { model, maxTokens: 3 })
const loadedAs = (llm: Llm, model: string): LoadedModel | undefined =>
  llm.loaded().find(({ name }) => name === `${model}:latest`)

/** Starts an answer that runs until `stop()`. */
async function startAnswer(llm: Llm, model: string) {
  const leaving = new AbortController()
  const stream = llm.chat('Hello', { model, stream: true, signal: leaving.signal })[Symbol.asyncIterator]()
  await stream.next()
  return { stop: () => leaving.abort() }
}

test('two models that load at the same time do not use the same memory of the card', async () => {
  process.env.CARD_DELAY = '500'
  const [one, other] = [await startApp(), await startApp()]

  const answers = await Promise.all([ask(one, 'a'), ask(other, 'b')])

  expect(answers).toMatchObject(Array(2).fill({ usage: { outputTokens: 3 } }))
})

test('an idle model leaves the card for the next one, which gets all of its layers there', async () => {
  const llm = await startApp()
  await ask(llm, 'a')
  const first = loadedAs(llm, 'a')
  expect(first?.gpuBytes).toBe(70e6)

  await ask(llm, 'b')

  expect(isAlive(first?.processId as number)).toBe(false)
  expect(loadedAs(llm, 'b')).toMatchObject({ gpuBytes: 70e6, gpuLayers: first?.gpuLayers, notes: [] })
  expect(first?.gpuLayers).toBeGreaterThan(0)
  expect(log).toEqual([])
})

test('a model that ends up on the CPU beside a busy one says so in the log, in loaded() and in /api/ps', async () => {
  const llm = await startApp()
  const running = await startAnswer(llm, 'a')
  const { url, close } = await listen(express().use(llmRouter(llm)))
  onTestFinished(close)

  const { usage } = await ask(llm, 'b')

  expect(usage.outputTokens).toBe(3)
  const note = expect.stringMatching(
    /^The model "b:latest" runs on the CPU: the graphics card has 0\.03 GB of free memory, too little for its \d+ layers\.$/,
  )
  expect(log).toEqual([note])
  expect(loadedAs(llm, 'b')).toMatchObject({ gpuLayers: 0, gpuBytes: 0, notes: [note] })
  const listed = await (await fetch(`${url}/api/ps`)).json()
  const onCard = (name: string, size_vram: number) => expect.objectContaining({ name, size_vram })
  expect(listed).toEqual({
    models: expect.arrayContaining([onCard('a:latest', 70e6), onCard('b:latest', 0)]),
  })
  running.stop()
})

test('with `gpuLayers: max`, a model waits for the busy one, and then gets the card', async () => {
  const [other, llm] = [await startApp(), await startApp('max')]
  const running = await startAnswer(other, 'a')
  const waiting = ask(llm, 'b')
  await expect.poll(() => loadedAs(llm, 'b')?.state, { timeout: 10_000 }).toBe('loading')

  running.stop()

  expect((await waiting).usage.outputTokens).toBe(3)
  expect(loadedAs(llm, 'b')).toMatchObject({ gpuBytes: 70e6, notes: [] })
})
