import { expect, test, vi } from 'vitest'
import type { LlmClient } from '../../calls/client.ts'
import { modelNotFound } from '../../errors.ts'
import type { Llm } from '../../llm.ts'
import type { ModelDetails } from '../../models/gguf/model-details.ts'
import type { Model } from '../../models/model.ts'
import type { RouteCall } from '../dialect.ts'
import { show } from './show.ts'

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
  chatTemplate: '{{ messages }}',
  capabilities: ['thinking', 'completion'],
  metadata: { 'general.name': 'Tiny', 'tokenizer.chat_template': '{{ messages }}', 'llama.block_count': 4 },
  tensors: [{ name: 'a', type: 'F16', shape: [2, 2] }],
}

const read = vi.fn(async () => details)

async function shown(body: object, found: Partial<Model> = {}, client = 'node') {
  const get = async (name: string): Promise<Model> => {
    if (name !== 'tiny') throw modelNotFound(name)
    return { ...model, ...found }
  }
  const llm = { models: { get, details: read } } as unknown as LlmClient
  const response = await show(
    {
      llm,
      request: { json: async () => body, header: () => client },
    } as unknown as RouteCall,
    {} as Llm,
  )
  return JSON.parse(response.body as string)
}

test('show does not reveal the path of a model', async () => {
  const answer = await shown({ model: 'tiny', system: 'Be brief.' })

  expect(answer).toEqual({
    modelfile: expect.stringContaining('FROM tiny:latest'),
    template: '{{ messages }}',
    system: 'Be brief.',
    details: {
      parent_model: '',
      format: 'gguf',
      family: 'llama',
      families: ['llama'],
      parameter_size: '3.64M',
      quantization_level: 'Q4_K_M',
    },
    model_info: {
      'general.parameter_count': 3_640_000,
      'general.quantization_version': 2,
      'llama.block_count': 4,
    },
    tensors: details.tensors,
    capabilities: ['thinking', 'completion'],
    modified_at: '2026-01-02T03:04:05.000Z',
  })
  expect(JSON.stringify(answer)).not.toContain('/secret')
})

test('show returns the Modelfile and its parts', async () => {
  const answer = await shown(
    { model: 'tiny' },
    {
      defaults: {
        template: '{{ .Prompt }}!',
        system: 'Be kind.',
        parameters: { num_ctx: 1_048_576, stop: ['\n', '<x>'] },
        messages: [{ role: 'user', content: 'Hi' }],
        license: ['MIT', 'BSD'],
      },
      config: { requires: '0.14.0' },
    },
  )

  expect(answer).toMatchObject({
    license: 'MIT\nBSD',
    // Clients split the lines at fixed columns, and parse numbers as integers.
    parameters: [
      'num_ctx                        1048576',
      'stop                           "\\n"',
      'stop                           "<x>"',
    ].join('\n'),
    template: '{{ .Prompt }}!',
    system: 'Be kind.',
    messages: [{ role: 'user', content: 'Hi' }],
    requires: '0.14.0',
    modelfile: expect.stringContaining('PARAMETER num_ctx 1048576\n'),
  })
})

test('GitHub Copilot Chat gets the requested name as the base name', async () => {
  const told = await shown({ model: 'tiny' }, {}, 'GitHubCopilotChat/1.0')
  const others = await shown({ model: 'tiny' })

  expect(told.model_info).toHaveProperty(['general.basename'], 'tiny')
  expect(others.model_info).not.toHaveProperty(['general.basename'])
})

test('the vocabulary is read only with `verbose`', async () => {
  read.mockClear()

  await shown({ name: 'tiny' })
  await shown({ name: 'tiny', verbose: true })

  const calls: readonly (readonly unknown[])[] = read.mock.calls
  expect(calls.map(([, options]) => options)).toEqual([{ arrays: false }, { arrays: true }])
})

test.each<[object, string, string]>([
  [{}, 'invalid_request', 'model is required'],
  [{ model: '' }, 'invalid_request', 'model is required'],
  [{ model: 'nope' }, 'not_found', 'model "nope:latest" not found'],
  [{ model: 'a b' }, 'invalid_request', 'invalid model name'],
  [{ model: 'big:cloud' }, 'permission', 'ollama cloud is disabled'],
  [{ model: 'big:70b-cloud' }, 'permission', 'ollama cloud is disabled'],
])('show rejects %j with %s', async (body, code, message) => {
  await expect(shown(body)).rejects.toMatchObject({ code, message: expect.stringContaining(message) })
})
