import { expect, test } from 'vitest'
import { emptyFolder } from '../../../../../test/support/empty-folder.ts'
import type { Model } from '../../models/model.ts'
import { RuntimeDir } from './ipc/runtime-dir.ts'
import type { LocalModelSettings } from './load-settings.ts'
import { LocalHealth } from './local-health.ts'
import type { LoadedModels } from './supervisor/loaded-models.ts'

const model = { name: 'tiny:latest', path: '/models/tiny.gguf' } as Model
const { signal } = new AbortController()

/** @param lastTokenAt when the process has last decoded a token */
function healthOf(lastTokenAt: number, runtimeDir = new RuntimeDir(undefined)) {
  const decoded: object[] = []
  const process = {
    ...{ footprint: { task: 'generate' }, lastTokenAt, hasEnded: false },
    generate: async (request: object) => void decoded.push(request),
  }
  const loaded = { get: () => ({ process }) } as unknown as LoadedModels
  const settings = { runtimeDir } as unknown as LocalModelSettings
  return { health: new LocalHealth(loaded, settings, () => false, undefined, true), decoded }
}

test('while the model decodes for others, their last token is the proof', async () => {
  const { health, decoded } = healthOf(performance.now() - 4_000)

  await health.probe(model, signal)

  expect(decoded).toEqual([])
})

test('a model that has decoded nothing for 5 s decodes one token', async () => {
  const { health, decoded } = healthOf(performance.now() - 6_000)

  await health.probe(model, signal)

  expect(decoded).toMatchObject([{ model: 'tiny:latest', maxTokens: 1 }])
})

test('a runtime folder that cannot be written is a problem', async () => {
  const missing = { ensure: () => `${emptyFolder()}/missing` } as unknown as RuntimeDir

  expect(await healthOf(0, missing).health.problem()).toMatch(/The runtime folder cannot be used: ENOENT/)
})
