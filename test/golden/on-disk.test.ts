/** Reads a store that Ollama wrote. */
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createLlm, type Llm } from '@modelmount/core'
import type { Model } from '@modelmount/core/models'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { adapterFile } from '../support/adapter.ts'
import {
  encoderModel,
  narrowModel,
  noiseModel,
  recurrentModel,
  slidingWindowModel,
} from '../support/models.ts'
import tags from './on-disk/tags.json' with { type: 'json' }

const recorded = fileURLToPath(new URL('on-disk', import.meta.url))

/** The files of blobs that were recorded without their bytes, by digest. */
const weights: Readonly<Record<string, string>> = {
  '2f2b2c6374bf899d4428ffc634a6c6a37ea4cf3f30227799f597fcc42a9cb236': narrowModel,
  d51e753f49128be2cd8cbdef6e20327ac8e560de4b0cd57fada5c8e5657a39ef: encoderModel,
  '1f27bab3b7b00aa6d9890ca7bfa818c20cde2d8e8d0f5115e61cec123ea89bc0': recurrentModel,
  '3418ea115710d7bff7e1f489f0842ffa28797cd0e590b562d847f7b447bcee46': slidingWindowModel,
  '497953cac9bbb0bf0f4596de5df92c4a5ca98d0a31092ebfd6150e1ee15eaf44': noiseModel,
}

let folder: string
let llm: Llm

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'on-disk-'))
  await cp(recorded, folder, { recursive: true })
  for (const [digits, file] of Object.entries(weights))
    await symlink(file, join(folder, 'blobs', `sha256-${digits}`))
  llm = await createLlm({ models: folder })
})

afterAll(async () => {
  await llm.close()
  await rm(folder, { recursive: true })
})

test('every model of the recorded directory is listed, with its size and digest', async () => {
  const listed = await llm.models.list()

  const shown = listed.map(({ name, sizeBytes, digest }) => ({ name, size: sizeBytes, digest }))
  expect(shown).toEqual(tags.map(({ name, size, digest }) => ({ name, size, digest })))
})

test('the list entry of each model equals Ollama’s', async () => {
  const models = await Promise.all(
    tags.map(async (tag) => ({ ...tag, model: await llm.models.get(tag.name) })),
  )
  const whole = models.filter(({ model }) => model.path !== '')

  expect(whole.length).toBeGreaterThan(20)
  for (const { name, details, capabilities, model } of whole) {
    const found = await llm.models.details(model)
    const { parent_model, family, families, parameter_size, quantization_level } = details
    expect(model.parent ?? '', name).toBe(parent_model)
    expect(model.config, name).toMatchObject({ model_family: family, model_families: families })
    expect(found, name).toMatchObject({
      parameterSize: parameter_size,
      quantization: quantization_level,
      contextSize: details.context_length,
      embeddingSize: details.embedding_length,
    })
    expect(found.capabilities, name).toEqual(expect.arrayContaining(capabilities ?? []))
  }
})

test('Modelfile defaults are read from blobs', async () => {
  const { defaults, parent } = await llm.models.get('tinyset')

  expect(parent).toBe('tiny:latest')
  expect(defaults).toEqual({
    system: 'You are Bob.',
    parameters: {
      bogus: 5,
      num_ctx: 2048,
      num_predict: 24,
      stop: ['\n\n', '<x>'],
      temperature: 0,
      top_p: 0.95,
    },
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'Hello <b>!' },
    ],
    license: ['L1', 'L2 "q"'],
  })
})

test.each<[string, Partial<Model>]>([
  ['tinygo', { defaults: expect.objectContaining({ template: expect.stringContaining('range .Messages') }) }],
  ['tinyreq', { config: expect.objectContaining({ requires: '0.14.0' }) }],
  ['tinyparser', { config: expect.objectContaining({ renderer: 'qwen3-vl-instruct', parser: 'qwen3' }) }],
  [
    'rem',
    {
      path: '',
      config: expect.objectContaining({ remote_model: 'x', remote_host: 'https://ollama.com:11434' }),
    },
  ],
])('%s has the properties in its manifest and config', async (name, expected) => {
  expect(await llm.models.get(name)).toMatchObject(expected)
})

test('details() of a model without weights gives invalid_request', async () => {
  await expect(llm.models.details('rem')).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringContaining('has no weights'),
  })
})

test('a model with an adapter has the path of its blob', async () => {
  const blob = join(
    folder,
    'blobs',
    'sha256-aa4f7906c8137439a5529d45162d4d5eca4affdcb2b04b701f9e506cbf7cf9ba',
  )
  await writeFile(blob, adapterFile())

  const { adapters } = await llm.models.get('lora')

  expect(adapters).toMatchObject([{ path: blob, scale: 1, sizeBytes: 7936 }])
})

test('reading changes nothing in the directory', async () => {
  for (const name of ['tinyset', 'tinygo', 'example.com/a/b:c']) await llm.models.get(name)

  const path = 'manifests/example.com/a/b/c'
  expect(await readFile(join(folder, path))).toEqual(await readFile(join(recorded, path)))
})
