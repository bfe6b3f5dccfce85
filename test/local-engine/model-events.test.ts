/** Events of model processes on the diagnostics channels. */
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createLlm } from '@modelmount/core'
import { type DiagnosticListeners, subscribe } from '@modelmount/core/diagnostics'
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { noiseModel } from '../support/models.ts'

const types = ['load', 'unload', 'evict', 'crash'] as const

interface Seen {
  readonly type: string
  readonly model: string
  readonly processId: number
  readonly reason?: string
  readonly loadMs?: number
  readonly loadedMs?: number
}

/** An app with room for one model, and the events of its models. */
async function start() {
  const models = emptyFolder()
  await copyFile(noiseModel, join(models, 'noise.gguf'))
  const llm = await createLlm({ models, local: { maxLoadedModels: 1, reloadCooldown: 0 } })
  onTestFinished(() => llm.close())
  const seen: Seen[] = []
  const listeners = types.map((type) => [
    `modelmount:model:${type}`,
    (event: object) => seen.push({ type, ...event } as Seen),
  ])
  onTestFinished(subscribe(llm, Object.fromEntries(listeners) as DiagnosticListeners))
  return { llm, seen }
}

test('a model has an event when it is loaded, and when another one takes its place or it is unloaded', async () => {
  const { llm, seen } = await start()

  await llm.load('tiny')
  const [{ processId } = { processId: 0 }] = llm.loaded()
  await llm.load('noise')
  await llm.unload('noise')

  expect(seen).toMatchObject([
    { type: 'load', model: 'tiny:latest', processId, contextSize: 4_096, gpuLayers: 0, notes: [] },
    { type: 'evict', model: 'tiny:latest', processId, reason: 'another model needed its place' },
    { type: 'load', model: 'noise:latest' },
    { type: 'unload', model: 'noise:latest', reason: 'it is no longer needed' },
  ])
  expect(seen[0]?.loadMs).toBeGreaterThan(0)
  expect(seen[1]?.loadedMs).toBeGreaterThan(0)
})

test('a killed model process is a crash', async () => {
  const { llm, seen } = await start()
  await llm.load('tiny')
  const [{ processId } = { processId: 0 }] = llm.loaded()

  process.kill(processId as number, 'SIGKILL')
  await expect.poll(() => seen.length).toBe(2)

  expect(seen[1]).toMatchObject({ type: 'crash', model: 'tiny:latest', processId, reason: undefined })
})

test('a model that is loaded when the app closes is unloaded', async () => {
  const { llm, seen } = await start()
  await llm.load('tiny')

  await llm.close()

  expect(seen.map(({ type }) => type)).toEqual(['load', 'unload'])
  expect(seen[1]).toMatchObject({ reason: 'the engine was closed' })
})
