/** Reranking, the tokenizer, rendered prompts and the deletion of models, in the OpenAI API. */
import { scriptedEngine } from '@modelmount/core/testing'
import { expect } from 'vitest'
import { chat, expectError, hello, json } from './calls.ts'
import { folderOf } from './ollama-calls.ts'
import type { OpenAIRequirementId } from './requirements.ts'
import type { Check } from './suite.ts'

const post = (url: string, path: string, body: object): Promise<Response> =>
  fetch(url + path, { method: 'POST', headers: json, body: JSON.stringify({ model: 'tiny', ...body }) })

const documents = ['a river', 'the river in the valley', 'stars']

export const prompts = {
  'openai:rerank:shape': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))
    const query = 'the river in the valley'

    for (const path of ['/v1/rerank', '/rerank']) {
      const response = await post(url, path, { query, documents, top_n: 2, return_documents: true })

      expect(response.status).toBe(200)
      const { results, ...others } = (await response.json()) as { results: { relevance_score: number }[] }
      expect(others).toEqual({
        model: 'tiny',
        object: 'list',
        usage: { prompt_tokens: expect.any(Number), total_tokens: expect.any(Number) },
      })
      expect(results).toHaveLength(2)
      expect(results[0]).toEqual({
        index: 1,
        relevance_score: expect.any(Number),
        document: { text: documents[1] },
      })
      expect(results[0]?.relevance_score).toBeGreaterThanOrEqual(results[1]?.relevance_score ?? 1)
    }
    const objects = documents.map((text) => ({ text }))
    const bare = (await (await post(url, '/v1/rerank', { query, documents: objects })).json()) as object
    expect(bare).toMatchObject({ results: Array(3).fill({ index: expect.any(Number) }) })
    expect(JSON.stringify(bare)).not.toContain('valley')
  },

  'openai:rerank:texts': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await post(url, '/rerank', { query: 'stars', texts: documents, return_text: true })

    const scores = (await response.json()) as { index: number; score: number; text: string }[]
    expect(scores.map(({ index }) => index).sort()).toEqual([0, 1, 2])
    expect(scores[0]).toEqual({ index: 2, score: expect.any(Number), text: 'stars' })
  },

  'openai:rerank:bad-input': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    for (const [body, param, code] of [
      [{ query: 'a' }, 'documents', 'missing_required_parameter'],
      [{ query: 'a', documents: [] }, 'documents', 'empty_array'],
      [{ query: 'a', documents: ['a', ''] }, 'documents[1]', 'invalid_value'],
      [{ query: 'a', documents: [1] }, 'documents[0]', 'invalid_type'],
      [{ documents }, 'query', 'missing_required_parameter'],
      [{ query: 'a', documents, top_n: 0 }, 'top_n', 'integer_below_min_value'],
      [{ query: 'a', documents, texts: documents }, 'texts', 'invalid_value'],
    ] as const)
      await expectError(await post(url, '/v1/rerank', body), 400, { param, code })
  },

  'openai:tokens:round-trip': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const { tokens } = (await (await post(url, '/tokenize', { content: 'Hé 🍂' })).json()) as {
      tokens: number[]
    }
    const text = await post(url, '/detokenize', { tokens })

    const pieces = await post(url, '/tokenize', { content: 'Hé 🍂', with_pieces: true })
    const none = await post(url, '/tokenize', { content: '', with_pieces: true })

    expect(await pieces.json()).toEqual({
      tokens: tokens.map((id) => ({ id, piece: String.fromCodePoint(id) })),
    })
    expect(await none.json()).toEqual({ tokens: [] })
    expect(tokens.every(Number.isInteger)).toBe(true)
    expect(await text.json()).toEqual({ content: 'Hé 🍂' })
  },

  'openai:tokens:bad-input': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    for (const tokens of [[-1], [2 ** 31], [1.5], ['1'], 5, [null]])
      await expectError(await post(url, '/detokenize', { tokens }), 400, {
        param: 'tokens',
        code: 'invalid_type',
      })
    await expectError(await post(url, '/tokenize', { content: 5 }), 400, {
      param: 'content',
      code: 'invalid_type',
    })
    await expectError(await post(url, '/tokenize', { content: 'a', with_pieces: 1 }), 400, {
      param: 'with_pieces',
      code: 'invalid_type',
    })
  },

  'openai:prompts:apply-template': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    const response = await post(url, '/apply-template', hello)

    expect(await response.json()).toEqual({
      prompt: expect.stringContaining(hello.messages[0]?.content ?? '?'),
    })
    await expectError(await post(url, '/apply-template', { messages: [] }), 400, {
      param: 'messages',
      code: 'empty_array',
    })
    expect(engine.requests).toEqual([])
  },

  'openai:prompts:input-tokens': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await post(url, '/v1/chat/completions/input_tokens', hello)
    const { usage } = (await (await chat(url, hello)).json()) as { usage: { prompt_tokens: number } }

    expect(await response.json()).toEqual({
      object: 'response.input_tokens',
      input_tokens: usage.prompt_tokens,
    })
  },

  'openai:embeddings:pooling': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    await expectError(await post(url, '/v1/embeddings', { input: 'a', pooling: 'none' }), 400, {
      param: 'pooling',
      code: 'unsupported_parameter',
    })
  },

  'openai:models:delete': async (serve) => {
    const given = { models: folderOf({}), scopes: ['inference', 'models'] } as const
    const url = await serve(scriptedEngine('Hello there.'), given)
    await post(url, '/api/copy', { source: 'tiny', destination: 'team/copy:q4' })
    const model = `${url}/v1/models/team%2Fcopy:q4`

    const response = await fetch(model, { method: 'DELETE' })

    expect([response.status, await response.json()]).toEqual([
      200,
      { id: 'team/copy:q4', object: 'model', deleted: true },
    ])
    for (const method of ['GET', 'DELETE'])
      await expectError(await fetch(model, { method }), 404, { code: 'model_not_found' })
  },

  'openai:models:delete-without-the-scope': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await fetch(`${url}/v1/models/tiny`, { method: 'DELETE' })

    await expectError(response, 403)
    expect((await fetch(`${url}/v1/models/tiny`)).status).toBe(200)
  },

  'openai:unsupported-apis': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))
    const form = new FormData()
    form.set('file', new Blob(['a'.repeat(100_000)]), 'speech.wav')

    for (const path of ['audio/speech', 'images/generations', 'images/edits', 'moderations'])
      await expectError(await post(url, `/v1/${path}`, { input: 'a' }), 404, {
        message: `Invalid URL (POST /v1/${path})`,
      })
    const audio = await fetch(`${url}/v1/audio/transcriptions`, { method: 'POST', body: form })
    await expectError(audio, 404, { message: 'Invalid URL (POST /v1/audio/transcriptions)' })
  },
} satisfies Partial<Record<OpenAIRequirementId, Check>>
