/** Settings of single models in the local engine. */
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createLlm, type Llm } from '@modelmount/core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { noiseModel } from '../support/models.ts'

const models = emptyFolder()
let llm: Llm

beforeAll(async () => {
  await copyFile(noiseModel, join(models, 'noise.gguf'))
  await copyFile(noiseModel, join(models, 'other.gguf'))
  llm = await createLlm({
    models,
    local: { contextSize: 512, parallel: 2, keepAlive: '1m', reloadCooldown: 0 },
    modelSettings: {
      tiny: { contextSize: 1_024, temperature: 0, maxTokens: 3 },
      'n*': { parallel: 8, keepAlive: 'forever' },
    },
  })
})

afterAll(() => llm.close())

const find = (name: string) => llm.loaded().find((model) => model.name === `${name}:latest`)

test('a caller without scopes gets the context size and the default options of the model', async () => {
  const { text, usage } = await llm.chat('Hi', { model: 'tiny', caller: { id: 'ann' } })

  expect([text, usage.outputTokens]).toEqual(['Hello!', 3])
  expect(find('tiny')).toMatchObject({
    contextSize: 1_024,
    settings: { contextSize: 1_024, maxTokens: 3, sampling: { temperature: 0 } },
  })
})

test('each model has its own number of sequences and its own keep-alive', async () => {
  await llm.load('noise')
  await llm.load('other')

  const [noise, other] = [find('noise'), find('other')]

  expect(noise).toMatchObject({ contextSize: 512, expiresAt: 'never', settings: { parallel: 8 } })
  expect(other?.settings).toBeUndefined()
  expect(other?.expiresAt).toBeInstanceOf(Date)
  // The weights are the same, and each sequence has its own context.
  expect(noise?.sizeBytes).toBeGreaterThan(other?.sizeBytes ?? Number.POSITIVE_INFINITY)
  expect(noise?.processId).not.toBe(other?.processId)
})

test('a call with the scope `models` may load the model with another context', async () => {
  await llm.load('tiny', { contextSize: 256 })

  expect(find('tiny')?.contextSize).toBe(256)
})
