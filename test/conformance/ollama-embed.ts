/** Checks of embeddings in the Ollama API. */

import { LlmError } from '@modelmount/core'
import type { EmbedRequest } from '@modelmount/core/engine'
import { scriptedEngine } from '@modelmount/core/testing'
import { expect } from 'vitest'
import { callOllama, expectOllamaError, wholeOf } from './calls.ts'
import { loader, mayLoad, nobody } from './ollama-calls.ts'
import type { OllamaRequirementId } from './requirements.ts'
import type { Check } from './suite.ts'

const embed = (url: string, body: string | object) => callOllama(url, 'embed', body)
const legacy = (url: string, body: string | object) => callOllama(url, 'embeddings', body)

/** An engine that records embedding requests. */
function embedder() {
  const told: Omit<EmbedRequest, 'model'>[] = []
  const engine = scriptedEngine('')
  return {
    told,
    engine: {
      ...engine,
      embed: ((request, call) => {
        const { model: _, ...rest } = request
        told.push(rest)
        return engine.embed(request, call)
      }) as typeof engine.embed,
    },
  }
}

const vector = async (text: string) => {
  const { embeddings } = await scriptedEngine('').embed(
    { model: 'any', inputs: [text] },
    { signal: new AbortController().signal },
  )
  return embeddings[0]
}

export const embedding = {
  'ollama:embed:shape': async (serve) => {
    const url = await serve(scriptedEngine(''))

    const response = await embed(url, { model: 'tiny', input: 'Hello' })

    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
    const answer = await wholeOf(response)
    expect(Object.keys(answer)).toEqual([
      ...['model', 'embeddings', 'total_duration', 'load_duration', 'prompt_eval_count'],
    ])
    expect(answer).toEqual({
      model: 'tiny',
      embeddings: [await vector('Hello')],
      total_duration: expect.any(Number),
      load_duration: 1,
      prompt_eval_count: 5,
    })
    expect(Number.isInteger(answer.total_duration)).toBe(true)
  },

  'ollama:embed:inputs': async (serve) => {
    const { engine, told } = embedder()
    const url = await serve(engine)

    const answer = await wholeOf(await embed(url, { model: 'tiny', input: ['b', 'a', 'b'] }))
    const [a, b] = [await vector('a'), await vector('b')]

    expect(answer).toMatchObject({ embeddings: [b, a, b], prompt_eval_count: 3 })
    expect((await wholeOf(await embed(url, { model: 'tiny', input: [''] }))).embeddings).toHaveLength(1)
    expect(told[0]?.inputs).toEqual(['b', 'a', 'b'])
  },

  'ollama:embed:no-input': async (serve) => {
    const { engine, told } = loader()
    const url = await serve(engine, mayLoad)

    for (const body of [{}, { input: null }, { input: '' }, { input: [] }])
      expect(await wholeOf(await embed(url, { model: 'tiny', ...body }))).toEqual({
        model: 'tiny',
        embeddings: [],
      })
    expect(await wholeOf(await legacy(url, { model: 'tiny', input: 'x' }))).toEqual({ embedding: [] })
    await embed(url, { model: 'tiny', keep_alive: 0 })

    expect(told).toEqual([
      ...Array(5).fill(['load', 'tiny', { contextSize: undefined, keepAlive: undefined }]),
      ['unload', 'tiny'],
    ])
  },

  'ollama:embed:options': async (serve) => {
    const { engine, told } = embedder()
    const url = await serve(engine, mayLoad)
    const body = { model: 'tiny', input: 'Hello' }

    await embed(url, body)
    await embed(url, { ...body, truncate: false, dimensions: 4, keep_alive: '10m', options: { num_ctx: 64 } })
    for (const dimensions of [0, -3, null]) await embed(url, { ...body, dimensions })

    const plain = { inputs: ['Hello'], overflow: 'truncate', load: {} }
    expect(told).toEqual([
      plain,
      {
        inputs: ['Hello'],
        overflow: 'error',
        dimensions: 4,
        load: { contextSize: 64, keepAlive: 600_000 },
      },
      ...[plain, plain, plain],
    ])
  },

  'ollama:embed:errors': async (serve) => {
    const url = await serve(nobody())
    const tooLong = new LlmError('context_length', 'Too long.', { inputTokens: 600, contextSize: 512 })
    const failing = await serve({ ...scriptedEngine(''), embed: () => Promise.reject(tooLong) })
    const missing = 'model "nope:7b" not found, try pulling it first'

    await expectOllamaError(await embed(url, { input: 'x' }), 404, "model '' not found")
    await expectOllamaError(await legacy(url, { prompt: 'x' }), 400, 'model is required')
    for (const body of [{ input: 'x' }, {}])
      await expectOllamaError(await embed(url, { model: 'nope:7b', ...body }), 404, missing)
    await expectOllamaError(await legacy(url, { model: 'nope:7b', prompt: 'x' }), 404, missing)
    for (const num_ctx of [0, 1])
      await expectOllamaError(
        await embed(failing, { model: 'tiny', input: 'x', options: { num_ctx } }),
        400,
        'input exceeds maximum context length and cannot be truncated further',
      )
    for (const ask of [embed, legacy]) {
      await expectOllamaError(await ask(url, { model: 'a//b', input: 'x' }), 400, 'invalid model name')
      await expectOllamaError(await ask(url, { model: 'nope:cloud', input: 'x', prompt: 'x' }), 403)
      await expectOllamaError(
        await ask(failing, { model: 'tiny', input: 'x', prompt: 'x', truncate: false }),
        400,
        expect.stringContaining('the input length exceeds the context length'),
      )
    }
  },

  'ollama:embeddings:shape': async (serve) => {
    const { engine, told } = embedder()
    const url = await serve(engine)

    const answer = await wholeOf(await legacy(url, { model: 'tiny', prompt: 'Hello' }))

    expect(answer).toEqual({ embedding: await vector('Hello') })
    expect(told).toEqual([{ inputs: ['Hello'], load: {} }])
  },
} satisfies Partial<Record<OllamaRequirementId, Check>>
