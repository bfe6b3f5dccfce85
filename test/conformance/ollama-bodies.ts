/** Checks of request bodies, model names and errors in the Ollama API. */
import { LlmError } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { expect } from 'vitest'
import { callOllama, expectOllamaError, hello, linesOf, promptOf, wholeOf } from './calls.ts'
import {
  asked,
  chat,
  endOf,
  generate,
  get,
  mayLoad,
  nobody,
  question,
  saying,
  show,
  whole,
} from './ollama-calls.ts'
import type { OllamaRequirementId } from './requirements.ts'
import type { Check } from './suite.ts'

export const bodies = {
  'ollama:transport:content-type-is-ignored': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    for (const type of ['application/x-www-form-urlencoded', 'text/plain', 'nonsense']) {
      const response = await chat(url, whole({}), { 'content-type': type })

      expect((await wholeOf(response)).message.content).toBe('Hello there.')
    }
  },

  'ollama:transport:accept-is-ignored': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const streamed = await chat(url, hello, { accept: 'application/json' })
    const asked = await chat(url, whole({}), { accept: 'application/x-ndjson' })

    expect(await linesOf(streamed)).toHaveLength(3)
    expect((await wholeOf(asked)).done).toBe(true)
  },

  'ollama:transport:any-key-is-accepted': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    for (const headers of [{}, { authorization: 'Bearer anything' }, { 'x-api-key': 'anything' }])
      expect((await chat(url, hello, headers)).status).toBe(200)
  },

  'ollama:transport:request-id': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const responses = [
      await chat(url),
      await chat(url, whole({})),
      await chat(url, {}),
      await generate(url),
      await get(url, 'tags'),
      await get(url, 'nope'),
      await get(url, 'chat'),
    ]

    const ids = responses.map(({ headers }) => headers.get('x-request-id'))
    expect(ids).toEqual(ids.map(() => expect.stringMatching(/^req_.+/)))
    expect(new Set(ids).size).toBe(responses.length)
  },

  'ollama:transport:browsers': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))
    const wanted = 'authorization,content-type,x-requested-with'

    const response = await get(url, 'chat', {
      method: 'OPTIONS',
      headers: {
        origin: 'http://localhost:8080',
        'access-control-request-method': 'POST',
        'access-control-request-headers': wanted,
      },
    })

    expect(response.status).toBe(204)
    expect(response.headers.get('access-control-allow-origin')).toBe('http://localhost:8080')
    expect(response.headers.get('access-control-allow-headers')).toBe(wanted)
  },

  'ollama:transport:head': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    for (const path of ['version', 'tags', 'ps']) {
      const response = await get(url, path, { method: 'HEAD' })

      expect([response.status, await response.text()]).toEqual([200, ''])
      expect(response.headers.get('content-type')).toMatch(/^application\/json/)
    }
  },

  'ollama:errors:unknown-path': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    for (const [path, method] of [
      ['nope', 'GET'],
      ['nope/deeper', 'POST'],
      ['tags/tiny', 'DELETE'],
    ] as const) {
      const response = await get(url, path, { method })
      expect([response.status, await response.text()]).toEqual([404, '404 page not found'])
      expect(response.headers.get('content-type')).toMatch(/^text\/plain/)
    }
  },

  'ollama:errors:wrong-method': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    for (const [method, path, allowed] of [
      ['GET', 'chat', 'POST'],
      ['DELETE', 'generate', 'POST'],
      ['POST', 'tags', 'GET, HEAD'],
      ['PUT', 'ps', 'GET, HEAD'],
    ] as const) {
      const response = await get(url, path, { method })

      expect([response.status, response.headers.get('allow')]).toEqual([405, allowed])
      expect(await response.text()).toBe('405 method not allowed')
    }
  },

  'ollama:errors:body-is-not-json': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    for (const path of ['chat', 'generate', 'show'] as const)
      for (const body of ['', '{', 'hello', '{"model":tiny}'])
        await expectOllamaError(await callOllama(url, path, body), 400)
    expect(engine.requests).toEqual([])
  },

  'ollama:errors:too-large-body': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    await expectOllamaError(await chat(url, 'A'.repeat(33 * 1024 ** 2)), 413)
  },

  'ollama:errors:engine-failure': async (serve) => {
    const broken = scriptedEngine(() => {
      throw new Error("ENOENT: no such file or directory, open '/home/ann/secret.gguf'")
    })
    const url = await serve(broken)

    for (const response of [await chat(url), await chat(url, whole({})), await generate(url)]) {
      expect(await response.clone().text()).not.toContain('/home/ann')
      await expectOllamaError(response, 500)
    }
  },

  'ollama:errors:overloaded': async (serve) => {
    const full = new LlmError('overloaded', 'Too many calls are waiting.', { retryAfterMs: 1_500 })
    const url = await serve(scriptedEngine(full))

    const response = await generate(url)

    expect(response.headers.get('retry-after')).toBe('2')
    await expectOllamaError(response, 503, 'Too many calls are waiting.')
  },

  'ollama:errors:before-the-first-line': async (serve) => {
    const url = await serve(scriptedEngine(new LlmError('upstream', 'The model process has ended.')))

    for (const stream of [undefined, true, false]) {
      await expectOllamaError(await chat(url, { ...hello, stream }), 500, 'The model process has ended.')
      await expectOllamaError(
        await generate(url, { ...question, stream }),
        500,
        'The model process has ended.',
      )
    }
  },

  'ollama:errors:in-a-stream': async (serve) => {
    const failure = new LlmError('upstream', 'The model process has ended.')
    const url = await serve(
      scriptedEngine((request) => (promptOf(request) === 'Fail' ? ['Once', ' upon', failure] : 'Hello.')),
    )

    const response = await generate(url, { ...question, prompt: 'Fail' })
    const [before, last] = endOf(await linesOf(response))
    const next = await wholeOf(await chat(url, whole({})))

    expect(response.status).toBe(200)
    expect(before.map((line) => [line.response, line.done])).toEqual([
      ['Once', false],
      [' upon', false],
    ])
    expect(last).toEqual({ error: 'The model process has ended.' })
    expect(next.message.content).toBe('Hello.')
  },

  'ollama:errors:context-length': async (serve) => {
    const tooLong = new LlmError('context_length', 'Too long.', { inputTokens: 5_000, contextSize: 4_096 })
    const url = await serve(scriptedEngine(tooLong))

    for (const stream of [true, false]) {
      const response = await chat(url, { ...hello, stream })

      const error = await response.clone().text()
      expect(error).toContain('longer than the context length currently available to the model')
      expect(error).toMatch(/5000.*4096/)
      await expectOllamaError(response, 400)
    }
  },

  'ollama:body:null': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    await expectOllamaError(await chat(url, 'null'), 400, 'model is required')
    await expectOllamaError(await show(url, 'null'), 400, 'model is required')
    await expectOllamaError(await generate(url, 'null'), 404, "model '' not found")
  },

  'ollama:body:null-means-absent': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const nothing = (...names: readonly string[]) => Object.fromEntries(names.map((name) => [name, null]))
    const both = ['stream', 'options', 'keep_alive', 'think', 'truncate', 'shift', 'format', 'logprobs']
    const more = ['top_logprobs', 'images', '_debug_render_only']
    const user = hello.messages[0]

    const said = await asked(url, engine, { ...hello, ...nothing(...both, ...more, 'tools') })
    const alone = await asked(url, engine, hello)
    const message = await asked(url, engine, {
      ...hello,
      messages: [{ ...user, ...nothing('thinking', 'images', 'tool_calls', 'tool_name') }],
    })
    const generated = await asked(url, engine, {
      ...question,
      ...nothing(...both, ...more, 'system', 'context', 'raw', 'suffix', 'template'),
    })

    expect(said).toEqual(alone)
    expect(message).toEqual(alone)
    expect(generated).toEqual(await asked(url, engine, question))
  },

  'ollama:body:unknown-fields': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const foo = { foo: { bar: [1] }, tool_choice: 'auto', ['__proto__']: 1 }

    const said = await asked(url, engine, { ...hello, ...foo, messages: [{ ...hello.messages[0], ...foo }] })

    expect(said).toEqual(await asked(url, engine, hello))
  },

  'ollama:body:names-in-any-case': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    const said = await asked(url, engine, {
      MODEL: 'tiny',
      Messages: [{ Role: 'user', CONTENT: hello.messages[0]?.content }],
      Stream: false,
      Think: false,
      Options: { temperature: 0 },
    })

    expect(said).toEqual(await asked(url, engine, whole({ think: false, options: { temperature: 0 } })))
    expect(said.sampling?.temperature).toBe(0)
  },

  'ollama:body:duplicate-names': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    for (const body of [
      '{"model":"a b","prompt":"No.","stream":true,"model":"tiny","prompt":"Yes.","stream":false}',
      '{"Model":"a b","prompt":"No.","stream":true,"model":"tiny","Prompt":"Yes.","STREAM":false}',
    ])
      expect((await wholeOf(await generate(url, body))).response).toBe('Hello there.')

    expect(engine.requests.map(promptOf)).toEqual(['Yes.', 'Yes.'])
  },

  'ollama:body:wrong-type': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    for (const [body, type, field] of [
      [{ ...hello, stream: 'yes' }, 'string', 'struct field ChatRequest.stream of type bool'],
      [{ ...hello, Stream: 'yes' }, 'string', 'struct field ChatRequest.stream of type bool'],
      [
        saying({ content: [{ type: 'text' }] }),
        'array',
        'struct field ChatRequest.messages.content of type string',
      ],
      [saying({ Content: 5 }), 'number', 'struct field ChatRequest.messages.content of type string'],
      [[], 'array', 'value of type api.ChatRequest'],
    ] as const)
      await expectOllamaError(await chat(url, body), 400, `json: cannot unmarshal ${type} into Go ${field}`)
  },

  'ollama:names:echoed': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    for (const model of ['tiny', 'Tiny:Latest', ' tiny ', 'registry.ollama.ai/library/tiny']) {
      const lines = [
        ...(await linesOf(await chat(url, { ...hello, model }))),
        ...(await linesOf(await generate(url, { ...question, model }))),
        await wholeOf(await chat(url, { model })),
        await wholeOf(await chat(url, whole({ model }))),
      ]

      expect(lines.map((line) => line.model)).toEqual(lines.map(() => model))
    }
  },

  'ollama:names:any-case': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    for (const model of ['tiny', 'TINY', 'Tiny:LATEST', 'library/tiny', 'Registry.Ollama.AI/Library/tiny']) {
      expect((await show(url, { model })).status).toBe(200)
      expect((await chat(url, { ...hello, model, think: true })).status).toBe(200)
    }
  },

  'ollama:names:local': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    for (const model of ['tiny:local', 'tiny:latest:local'])
      expect((await show(url, { model })).status).toBe(200)
  },

  'ollama:names:missing': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    for (const model of [undefined, null, '']) {
      await expectOllamaError(await generate(url, { ...question, model }), 404, "model '' not found")
      await expectOllamaError(await chat(url, { ...hello, model }), 400, 'model is required')
      await expectOllamaError(await show(url, { model }), 400, 'model is required')
    }
    expect(engine.requests).toEqual([])
  },

  'ollama:names:invalid': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    for (const model of ['a b', '/tiny', 'tiny:', '.hidden', '-x', 'café', '../tiny', 'a//b', 'tiny\0', '💥'])
      for (const body of [
        { ...hello, model },
        { ...question, model },
        { model },
        { model, keep_alive: 0 },
      ] as const) {
        await expectOllamaError(await chat(url, body), 400, 'invalid model name')
        await expectOllamaError(await generate(url, body), 400, 'invalid model name')
        await expectOllamaError(await show(url, body), 400, 'invalid model name')
      }
    expect(engine.requests).toEqual([])
  },

  'ollama:names:unknown': async (serve) => {
    const url = await serve(nobody(), mayLoad)

    for (const [model, tagged] of [
      ['nope', 'nope:latest'],
      ['Nope:7b', 'Nope:7b'],
      ['hf.co/some/Model-GGUF:Q4', 'hf.co/some/Model-GGUF:Q4'],
    ] as const) {
      for (const body of [{}, { stream: false }, { messages: [] }, { messages: [], keep_alive: 0 }])
        await expectOllamaError(
          await chat(url, { ...hello, model, ...body }),
          404,
          `model '${model}' not found`,
        )
      for (const body of [{}, { stream: false }, { prompt: '' }, { prompt: '', keep_alive: 0 }])
        await expectOllamaError(
          await generate(url, { ...question, model, ...body }),
          404,
          `model '${model}' not found`,
        )
      await expectOllamaError(await show(url, { model }), 404, `model '${tagged}' not found`)
    }
  },

  'ollama:names:cloud': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    for (const model of ['gpt-oss:cloud', 'gpt-oss:120b-cloud', 'Gpt-Oss:Cloud'])
      for (const response of [
        await chat(url, { ...hello, model }),
        await chat(url, { model }),
        await generate(url, { ...question, model }),
        await show(url, { model }),
      ])
        await expectOllamaError(
          response,
          403,
          expect.stringMatching(/^ollama cloud is disabled: remote model /),
        )
    expect(engine.requests).toEqual([])
  },
} satisfies Partial<Record<OllamaRequirementId, Check>>
