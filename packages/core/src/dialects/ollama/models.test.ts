import { expect, test, vi } from 'vitest'
import type { LoadedModel } from '../../engine/engine.ts'
import { LlmError, modelNotFound } from '../../errors.ts'
import type { Llm } from '../../llm.ts'
import type { ModelDetails } from '../../models/details.ts'
import type { Model } from '../../models/store.ts'
import type { Call, Handler } from '../dialect.ts'
import { detailsOf, running, show, tags, version } from './models.ts'

const model: Model = {
  name: 'tiny:latest',
  path: '/secret/tiny.gguf',
  sizeBytes: 4_000,
  modifiedAt: new Date('2026-01-02T03:04:05Z'),
  digest: 'abc',
  builtIn: false,
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
  } as unknown as Llm
}

async function ask(handler: Handler, llm: Llm, body: object = {}): Promise<unknown> {
  const response = await handler({ llm, request: { json: async () => body } } as unknown as Call)
  return JSON.parse(response.body as string)
}

test('the version is one that clients can compare', async () => {
  expect(await ask(version, fakeLlm())).toEqual({ version: expect.stringMatching(/^\d+\.\d+\.\d+$/) })
})

test('models are listed with their details, the newest first', async () => {
  const older = { ...model, name: 'old:latest', modifiedAt: new Date(0) }

  const listed = await ask(tags, fakeLlm({ models: [older, model] }))

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

test('a model whose file cannot be read is listed all the same', async () => {
  const read = async (): Promise<ModelDetails> => {
    throw unreadable
  }

  expect(await ask(tags, fakeLlm({ details: read }))).toMatchObject({
    models: [{ name: 'tiny:latest', details: { family: '', families: null, parameter_size: '' } }],
  })
})

test('a list looks for no model a second time', async () => {
  const llm = fakeLlm()

  await ask(tags, llm)

  expect(llm.models.details).toHaveBeenCalledExactlyOnceWith(model)
})

test('what is loaded says what it takes and when it goes', async () => {
  const loaded: LoadedModel = {
    name: 'tiny:latest',
    state: 'ready',
    contextSize: 4_096,
    sizeBytes: 17_000,
    gpuBytes: 5_000,
    expiresAt: new Date('2026-01-02T03:09:05Z'),
  }

  expect(await ask(running, fakeLlm({ loaded: [loaded] }))).toEqual({
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
  expect(await ask(running, fakeLlm({ loaded: [loaded], models: [] }))).toMatchObject({
    models: [{ name: 'tiny:latest', digest: '', details: { family: '' } }],
  })
})

test('a model is shown without a word about where it lies', async () => {
  const shown = await ask(show, fakeLlm(), { model: 'tiny', system: 'Be brief.' })

  expect(shown).toEqual({
    modelfile: expect.stringContaining('FROM tiny:latest'),
    template: '{{ messages }}',
    system: 'Be brief.',
    details: shortDetails,
    model_info: {
      'general.parameter_count': 3_640_000,
      'general.quantization_version': 2,
      'llama.block_count': 4,
    },
    tensors: details.tensors,
    capabilities: ['thinking', 'completion'],
    modified_at: '2026-01-02T03:04:05.000Z',
  })
  expect(JSON.stringify(shown)).not.toContain('/secret')
})

test('a vocabulary is read only for those who ask for it', async () => {
  const llm = fakeLlm()

  await ask(show, llm, { name: 'tiny' })
  await ask(show, llm, { name: 'tiny', verbose: true })

  expect(vi.mocked(llm.models.details).mock.calls.map(([, options]) => options)).toEqual([
    { arrays: false },
    { arrays: true },
  ])
})

test.each<[object, string, string]>([
  [{}, 'invalid_request', 'model is required'],
  [{ model: '' }, 'invalid_request', 'model is required'],
  [{ model: 'nope' }, 'not_found', 'model "nope:latest" not found'],
  [{ model: 'a b' }, 'invalid_request', 'invalid model name'],
  [{ model: 'big:cloud' }, 'permission', 'no cloud behind this server'],
  [{ model: 'big:70b-cloud' }, 'permission', 'no cloud behind this server'],
])('%j is not shown: %s', async (body, code, message) => {
  await expect(ask(show, fakeLlm(), body)).rejects.toMatchObject({
    code,
    message: expect.stringContaining(message),
  })
})

test('a model that is not here may be one of the engine, and what is no name cannot', async () => {
  expect(await detailsOf(fakeLlm(), 'tiny')).toBe(details)
  expect(await detailsOf(fakeLlm(), 'nope')).toBeUndefined()
  await expect(detailsOf(fakeLlm(), '../etc')).rejects.toMatchObject({ code: 'invalid_request' })
})

test('a model whose file cannot be read fails as such', async () => {
  const read = async (): Promise<ModelDetails> => {
    throw unreadable
  }

  await expect(detailsOf(fakeLlm({ details: read }), 'tiny')).rejects.toBe(unreadable)
})
