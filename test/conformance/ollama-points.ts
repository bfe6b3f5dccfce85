/** Fifteen points in which servers with the Ollama API often differ from Ollama. */
import { scriptedEngine } from '@modelmount/core/testing'
import { expect } from 'vitest'
import {
  callOllama,
  chat as complete,
  completionOf,
  expectOllamaError,
  hello,
  linesOf,
  wholeOf,
} from './calls.ts'
import {
  asked,
  chat,
  encoder,
  endOf,
  engineOf,
  folderOf,
  generate,
  get,
  isLoaded,
  loader,
  mayLoad,
  nobody,
  plain,
  question,
  show,
  text,
  thought,
  whole,
  withOptions,
} from './ollama-calls.ts'
import { digestOf, expectAnswers, making, unreachable } from './ollama-routes.ts'
import type { OllamaRequirementId } from './requirements.ts'
import type { Check, Given } from './suite.ts'

const mayChange = (): Given => ({ models: folderOf({}), scopes: ['inference', 'models'] })

export const points = {
  'ollama:points:01-not-found': async (serve) => {
    const url = await serve(nobody(), mayChange())

    for (const response of [
      await generate(url, { model: 'nope', prompt: 'x' }),
      await chat(url, { ...hello, model: 'nope' }),
    ])
      await expectOllamaError(response, 404, "model 'nope' not found")
    await expectOllamaError(await generate(url, {}), 404, "model '' not found")
    await expectOllamaError(await chat(url, {}), 400, 'model is required')
    await expectOllamaError(await show(url, { model: 'nope' }), 404, "model 'nope:latest' not found")
    for (const path of ['embed', 'embeddings'] as const)
      await expectOllamaError(
        await callOllama(url, path, { model: 'nope', input: 'x', prompt: 'x' }),
        404,
        'model "nope" not found, try pulling it first',
      )
    await expectAnswers(url, [
      ['POST /api/copy', { source: 'nope', destination: 'b' }, 404, { error: 'model "nope" not found' }],
      ['DELETE /api/delete', { model: 'nope' }, 404, { error: "model 'nope' not found" }],
    ])
  },

  'ollama:points:02-options': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    await expectOllamaError(await chat(url, withOptions({ temperature: 'hot' })), 400)
    await expectOllamaError(await chat(url, whole({ keep_alive: 'abc' })), 400)
    expect((await chat(url, withOptions({ mirostat: 2, nobody_knows: 'x' }))).status).toBe(200)
  },

  'ollama:points:03-load-and-unload': async (serve) => {
    const url = await serve(loader().engine, mayLoad)

    for (const [response, reason] of [
      [await generate(url, { model: 'tiny' }), 'load'],
      [await chat(url, { model: 'tiny', keep_alive: 0 }), 'unload'],
    ] as const) {
      expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
      const answer = await wholeOf(response)
      expect(answer).toMatchObject({ done: true, done_reason: reason })
      expect(Object.keys(answer).filter((key) => /duration|count|context/.test(key))).toEqual([])
    }
  },

  'ollama:points:04-last-line': async (serve) => {
    const url = await serve(
      engineOf([text('Hello')], { timings: { loadMs: 0, promptMs: 0, generateMs: 0 } }).engine,
    )

    const [, last] = endOf(await linesOf(await generate(url)))

    expect(last.context).toEqual([1, 2, 3])
    expect(last.load_duration).toBeGreaterThan(0)
  },

  'ollama:points:05-whole-prompt': async (serve) => {
    const { engine } = engineOf([text('Hello')])
    const url = await serve(engine)

    const answer = await wholeOf(await chat(url, whole({})))

    expect(answer.prompt_eval_count).toBe(7)
  },

  'ollama:points:06-thinking': async (serve) => {
    const engine = engineOf([thought('Hm.'), text('Hello')])
    const url = await serve(engine.engine)

    for (const body of [question, hello])
      expect(await asked(url, engine, body)).toMatchObject({ reasoning: true })
    // In chat completions the template decides about reasoning, in Anthropic's API the request.
    for (const [path, body, reasoning] of [
      ['chat/completions', hello, 'auto'],
      ['messages', { ...hello, max_tokens: 9 }, false],
    ] as const) {
      await (await fetch(`${url}/v1/${path}`, { method: 'POST', body: JSON.stringify(body) })).text()
      expect(engine.requests.at(-1)).toMatchObject({ reasoning })
    }
  },

  'ollama:points:07-pull-errors': async (serve) => {
    const url = await serve(scriptedEngine(''), mayChange())

    const response = await fetch(`${url}/api/pull`, {
      method: 'POST',
      body: JSON.stringify({ model: unreachable, insecure: true }),
    })

    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('application/x-ndjson')
    const [before, last] = endOf(await linesOf(response))
    expect(before).toEqual([{ status: 'pulling manifest' }])
    expect(last).toEqual({ error: expect.stringMatching(/^pull model manifest: /) })
  },

  'ollama:points:08-progress': async (serve) => {
    const url = await serve(scriptedEngine(''), mayChange())
    await expectAnswers(url, making)

    const response = await fetch(`${url}/api/create`, {
      method: 'POST',
      body: JSON.stringify({ model: 'other', from: 'made', system: 'Be kind.' }),
    })

    const [before, last] = endOf(await linesOf(response))
    expect(last).toEqual({ status: 'success' })
    // Empty fields are omitted: no key has 0 or null.
    for (const line of before)
      expect(Object.values(line).every((value) => typeof value === 'string' || value > 0)).toBe(true)
  },

  'ollama:points:09-whole-calls': async (serve) => {
    const weather = { call: 'weather', id: 'call_1', arguments: ['{"city":', '"Paris"}'] }
    const url = await serve(scriptedEngine([weather]))

    const lines = await linesOf(await chat(url))
    const { choices } = await completionOf(await complete(url, hello))

    const calls = lines.flatMap(({ message }) => message?.tool_calls ?? [])
    expect(calls).toEqual([
      { id: 'call_1', function: { index: 0, name: 'weather', arguments: { city: 'Paris' } } },
    ])
    expect(choices[0]?.message.tool_calls).toMatchObject([{ function: { arguments: '{"city":"Paris"}' } }])
  },

  'ollama:points:10-v1-sampling': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    await (await complete(url, hello)).text()

    expect(engine.requests.at(-1)?.sampling).toMatchObject({ temperature: 1, topP: 1 })
  },

  'ollama:points:11-digests': async (serve) => {
    const loaded = isLoaded('tiny:latest', 'never')
    const url = await serve({ ...scriptedEngine(''), loaded: () => [loaded] }, mayChange())
    await expectAnswers(url, making)

    for (const path of ['tags', 'ps'])
      for (const { digest } of (await wholeOf(await get(url, path))).models)
        expect(digest).toMatch(/^[0-9a-f]{64}$/)
  },

  'ollama:points:12-model-info': async (serve) => {
    const url = await serve(scriptedEngine(''), {
      models: folderOf({ 'plain.gguf': [plain, '2026-01-01'], 'bert.gguf': [encoder, '2026-01-01'] }),
    })

    for (const model of ['tiny', 'plain', 'bert'])
      expect((await wholeOf(await show(url, { model }))).model_info).toMatchObject({
        'general.architecture': expect.any(String),
      })
  },

  'ollama:points:13-refused-pages': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await chat(url, hello, { origin: 'https://evil.example' })

    expect([response.status, await response.text()]).toEqual([403, ''])
    expect(response.headers.get('access-control-allow-origin')).toBeNull()
    const unrouted = await fetch(`${url}/api/chat`, { headers: { origin: 'https://evil.example' } })
    expect([unrouted.status, await unrouted.text()]).toEqual([403, ''])
  },

  'ollama:points:14-delete-and-mismatch': async (serve) => {
    const { engine, told } = loader()
    const url = await serve(engine, mayChange())
    const other = Buffer.from('other bytes')

    await expectAnswers(url, [
      ...making,
      ['DELETE /api/delete', { model: 'made' }, 200],
      [
        `POST /api/blobs/sha256:${'0'.repeat(64)}`,
        new Uint8Array(other),
        400,
        {
          error: `digest mismatch, expected "sha256:${'0'.repeat(64)}", got "${digestOf(other)}"`,
        },
      ],
      [`HEAD /api/blobs/${digestOf(other)}`, undefined, 200],
    ])
    expect(told).toEqual([])
  },

  'ollama:points:15-names': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    const { model } = await wholeOf(await chat(url, whole({ model: 'TINY' })))
    const { models } = await wholeOf(await get(url, 'tags'))

    expect(model).toBe('TINY')
    expect(models).toMatchObject([{ name: 'tiny:latest', model: 'tiny:latest' }])
  },
} satisfies Partial<Record<OllamaRequirementId, Check>>
