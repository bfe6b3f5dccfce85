import { expect, test, vi } from 'vitest'
import type { LlmClient } from '../../calls/client.ts'
import type { LoadedModel } from '../../engine/engine.ts'
import { LlmError, modelNotFound } from '../../errors.ts'
import type { Llm } from '../../llm.ts'
import type { ModelDetails } from '../../models/gguf/model-details.ts'
import type { Model } from '../../models/model.ts'
import type { Handler, RouteCall } from '../dialect.ts'
import { copy, findDetails, getVersion, listLoadedModels, listModels, remove } from './models.ts'

const model: Model = {
  name: 'tiny:latest',
  path: '/secret/tiny.gguf',
  sizeBytes: 4_000,
  modifiedAt: new Date('2026-01-02T03:04:05Z'),
  digest: 'abc',
  isBuiltIn: false,
}
const details: ModelDetails = {
  architecture: 'llama',
  parameterCount: 3_640_000,
  parameterSize: '3.64M',
  quantization: 'Q4_K_M',
  contextSize: 8_192,
  embeddingSize: 256,
  chatTemplate: '{{ messages }}',
  capabilities: ['thinking', 'completion'],
  metadata: { 'general.name': 'Tiny', 'tokenizer.chat_template': '{{ messages }}', 'llama.block_count': 4 },
  tensors: [{ name: 'a', type: 'F16', shape: [2, 2] }],
}
const shortDetails = {
  parent_model: '',
  format: 'gguf',
  family: 'llama',
  families: ['llama'],
  parameter_size: '3.64M',
  quantization_level: 'Q4_K_M',
}
const unreadable = new LlmError('upstream', 'The file of the model "tiny" cannot be used.')

interface Fake {
  readonly models?: readonly Model[]
  readonly details?: () => Promise<ModelDetails>
  readonly loaded?: readonly LoadedModel[]
}

const fakeLlm = ({ models = [model], details: read = async () => details, loaded = [] }: Fake = {}) => {
  const get = async (name: string): Promise<Model> => {
    const found = models.find((one) => one.name === name || one.name === `${name}:latest`)
    if (!found) throw modelNotFound(name)
    return found
  }
  const detailsOfModel = vi.fn(async (which: string | Model) => {
    if (typeof which === 'string') await get(which)
    return read()
  })
  return {
    models: { list: async () => models, get, details: detailsOfModel },
    loaded: () => loaded,
  } as unknown as LlmClient
}

const answer = (handler: Handler, llm: LlmClient, body: object = {}) =>
  handler({ llm, request: { json: async () => body } } as unknown as RouteCall, {} as Llm)

const ask = async (handler: Handler, llm: LlmClient, body?: object) =>
  JSON.parse((await answer(handler, llm, body)).body as string)

test('the version has a format that clients can compare', async () => {
  expect(await ask(getVersion, fakeLlm())).toEqual({ version: expect.stringMatching(/^\d+\.\d+\.\d+$/) })
})

test('models are listed with their details, newest first', async () => {
  const older = { ...model, name: 'old:latest', modifiedAt: new Date(0) }

  const listed = await ask(listModels, fakeLlm({ models: [older, model] }))

  expect(listed).toEqual({
    models: [
      {
        name: 'tiny:latest',
        model: 'tiny:latest',
        modified_at: '2026-01-02T03:04:05.000Z',
        size: 4_000,
        digest: 'abc',
        details: { ...shortDetails, context_length: 8_192, embedding_length: 256 },
        capabilities: ['thinking', 'completion'],
      },
      expect.objectContaining({ name: 'old:latest' }),
    ],
  })
})

test('a model is listed even if its file cannot be read', async () => {
  const read = async (): Promise<ModelDetails> => {
    throw unreadable
  }

  expect(await ask(listModels, fakeLlm({ details: read }))).toMatchObject({
    models: [{ name: 'tiny:latest', details: { family: '', families: null, parameter_size: '' } }],
  })
})

test('listing looks up each model once', async () => {
  const llm = fakeLlm()

  await ask(listModels, llm)

  expect(llm.models.details).toHaveBeenCalledExactlyOnceWith(model)
})

test('loaded models are listed with their size and expiry', async () => {
  const loaded: LoadedModel = {
    name: 'tiny:latest',
    state: 'ready',
    contextSize: 4_096,
    sizeBytes: 17_000,
    gpuBytes: 5_000,
    expiresAt: new Date('2026-01-02T03:09:05Z'),
  }

  expect(await ask(listLoadedModels, fakeLlm({ loaded: [loaded] }))).toEqual({
    models: [
      {
        name: 'tiny:latest',
        model: 'tiny:latest',
        size: 17_000,
        digest: 'abc',
        details: shortDetails,
        expires_at: '2026-01-02T03:09:05.000Z',
        size_vram: 5_000,
        context_length: 4_096,
      },
    ],
  })
  expect(await ask(listLoadedModels, fakeLlm({ loaded: [loaded], models: [] }))).toMatchObject({
    models: [{ name: 'tiny:latest', digest: '', details: { family: '' } }],
  })
})

test('a loaded model keeps its digest after its name is deleted', async () => {
  const loaded: LoadedModel = {
    ...{ name: 'gone:latest', digest: 'abc', state: 'ready', contextSize: 9, sizeBytes: 9, gpuBytes: 0 },
    expiresAt: 'never',
  }

  const copied = await ask(listLoadedModels, fakeLlm({ loaded: [loaded] }))
  const changed = await ask(
    listLoadedModels,
    fakeLlm({ loaded: [{ ...loaded, name: 'tiny:latest', digest: 'old' }] }),
  )

  expect(copied.models).toMatchObject([{ name: 'gone:latest', digest: 'abc', details: { family: 'llama' } }])
  expect(changed.models).toMatchObject([{ name: 'tiny:latest', digest: 'old' }])
})

const derived: Model = {
  ...model,
  parent: 'base:latest',
  config: { model_family: 'fam', model_families: ['fam', 'clip'], model_type: '9B', file_type: 'unknown' },
}

test('the config of a model takes precedence over its file', async () => {
  const { models } = await ask(listModels, fakeLlm({ models: [derived] }))

  expect(models[0].details).toMatchObject({
    parent_model: 'base:latest',
    family: 'fam',
    families: ['fam', 'clip'],
    parameter_size: '9B',
    quantization_level: 'Q4_K_M',
  })
})

const changing = (changed: unknown[] = []) =>
  ({
    models: {
      copy: async (from: string, to: string) => {
        if (from === 'nope') throw modelNotFound(from)
        changed.push([from, to])
      },
      delete: async (name: string) => void changed.push(name),
    },
  }) as unknown as LlmClient

test('copy and delete respond without a body', async () => {
  const changed: unknown[] = []
  const llm = changing(changed)

  const answers = [
    await answer(copy, llm, { source: 'a', destination: 'team/b:1' }),
    await answer(remove, llm, { model: 'a' }),
    await answer(remove, llm, { name: ' b ' }),
  ]

  expect(answers).toEqual(Array(3).fill({ status: 200, headers: {}, body: null }))
  expect(changed).toEqual([['a', 'team/b:1'], 'a', ' b '])
})

test.each<[Handler, object, string, string]>([
  [copy, {}, 'invalid_request', 'source "" is invalid'],
  [copy, { source: 'a b', destination: 'b' }, 'invalid_request', 'source "a b" is invalid'],
  [copy, { source: ' a', destination: 'b' }, 'invalid_request', 'source " a" is invalid'],
  [copy, { source: 'a', destination: '../b' }, 'invalid_request', 'destination "../b" is invalid'],
  [copy, { source: 'nope', destination: 'b' }, 'not_found', 'model "nope" not found'],
  [remove, {}, 'invalid_request', 'model is required'],
  [remove, { model: '../../etc/passwd' }, 'invalid_request', 'name "../../etc/passwd" is invalid'],
])('%o rejects %j', async (handler, body, code, message) => {
  await expect(answer(handler, changing(), body)).rejects.toMatchObject({ code, message })
})

test('an unknown name may be a model of the engine, and an invalid name is rejected', async () => {
  expect(await findDetails(fakeLlm(), 'tiny')).toBe(details)
  expect(await findDetails(fakeLlm(), 'nope')).toBeUndefined()
  await expect(findDetails(fakeLlm(), '../etc')).rejects.toMatchObject({ code: 'invalid_request' })
})

test.each([[{ config: { remote_host: 'https://cloud.example' } }, 'permission', 'ollama cloud is disabled']])(
  'a model with %j is rejected',
  async (found, code, message) => {
    const llm = fakeLlm({ models: [{ ...model, ...found }] })

    await expect(findDetails(llm, 'tiny')).rejects.toMatchObject({
      code,
      message: expect.stringContaining(message),
    })
  },
)

test('if the file of a model cannot be read, its details throw the error', async () => {
  const read = async (): Promise<ModelDetails> => {
    throw unreadable
  }

  await expect(findDetails(fakeLlm({ details: read }), 'tiny')).rejects.toBe(unreadable)
})
