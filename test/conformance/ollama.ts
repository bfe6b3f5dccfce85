/** One check for each requirement of the Ollama API. Most checks are in the imported files. */
import { toTemplateMessages } from '@modelmount/core/engine'
import { scriptedEngine } from '@modelmount/core/testing'
import { expect } from 'vitest'
import { callOllama, expectOllamaError, hello, linesOf, promptOf, soon, wholeOf } from './calls.ts'
import { limitsOf } from './limits.ts'
import { blobs } from './ollama-blobs.ts'
import { bodies } from './ollama-bodies.ts'
import {
  asked,
  chat,
  conversations,
  encoder,
  endOf,
  engineOf,
  firstKeys,
  folderOf,
  generate,
  get,
  loader,
  mayLoad,
  question,
  saying,
  show,
  statistics,
  text,
  thought,
  time,
  whole,
  withOptions,
} from './ollama-calls.ts'
import { embedding } from './ollama-embed.ts'
import { models } from './ollama-models.ts'
import { options } from './ollama-options.ts'
import { points } from './ollama-points.ts'
import { routes } from './ollama-routes.ts'
import { tooling } from './ollama-tools.ts'
import type { OllamaRequirementId } from './requirements.ts'
import type { Check } from './suite.ts'

export const checks = {
  ...bodies,
  ...limitsOf('ollama'),
  ...options,
  ...models,
  ...tooling,
  ...routes,
  ...blobs,
  ...points,
  ...embedding,

  'ollama:generate:streams-by-default': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    for (const stream of [undefined, null, true]) {
      const response = await generate(url, { ...question, stream })

      expect(response.status).toBe(200)
      expect(response.headers.get('content-type')).toBe('application/x-ndjson')
      expect(response.headers.get('cache-control')).toContain('no-cache')
      expect(await response.text()).toMatch(/^(\{.*\}\n){3}$/)
    }
    const response = await generate(url, { ...question, stream: false })
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
  },

  'ollama:generate:lines': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const [before] = endOf(await linesOf(await generate(url)))

    expect(before).toEqual([
      { model: 'tiny', created_at: time, response: 'Hello', done: false },
      { model: 'tiny', created_at: time, response: ' there.', done: false },
    ])
    for (const line of before) expect(Object.keys(line)).toEqual([...firstKeys, 'response', 'done'])
  },

  'ollama:generate:last-line': async (serve) => {
    const url = await serve(engineOf([text('Hello'), text(' there.')]).engine)

    const [, last] = endOf(await linesOf(await generate(url)))

    expect(Object.keys(last)).toEqual([
      ...firstKeys,
      'response',
      'done',
      'done_reason',
      'context',
      ...statistics,
    ])
    expect(last).toEqual({
      model: 'tiny',
      created_at: time,
      response: '',
      done: true,
      done_reason: 'stop',
      context: [1, 2, 3],
      total_duration: expect.any(Number),
      load_duration: 2_000_000,
      prompt_eval_count: 7,
      prompt_eval_duration: 500_000,
      eval_count: 2,
      eval_duration: 4_000_001,
    })
    expect(Number.isInteger(last.total_duration)).toBe(true)
  },

  'ollama:generate:times-are-never-zero': async (serve) => {
    const timings = { loadMs: 0, promptMs: 0, generateMs: 0 }
    const url = await serve(engineOf([text('Hello')], { timings }).engine)

    const answer = await wholeOf(await generate(url, { ...question, stream: false }))

    for (const name of statistics.filter((name) => name.endsWith('duration')))
      expect([name, answer[name] > 0]).toEqual([name, true])
  },

  'ollama:generate:whole': async (serve) => {
    const url = await serve(engineOf([thought('Hm.'), text('Hello'), text(' there.')]).engine)

    const response = await generate(url, { ...question, stream: false })

    const answer = await wholeOf(response)
    expect(response.status).toBe(200)
    expect(Object.keys(answer)).toEqual([
      ...firstKeys,
      'response',
      'thinking',
      'done',
      'done_reason',
      'context',
      ...statistics,
    ])
    expect(answer).toMatchObject({
      model: 'tiny',
      created_at: time,
      response: 'Hello there.',
      done: true,
      done_reason: 'stop',
      prompt_eval_count: 7,
      eval_count: 3,
    })
  },

  'ollama:generate:stream-joins-to-whole': async (serve) => {
    const url = await serve(scriptedEngine((request) => [...promptOf(request)]))
    const body = { ...question, prompt: '👩‍🚀 飛んで ✨ é <b>&\u2028' }

    const answer = await wholeOf(await generate(url, { ...body, stream: false }))
    const lines = await linesOf(await generate(url, body))

    expect(answer.response).toBe(body.prompt)
    expect(lines.map((line) => line.response).join('')).toBe(body.prompt)
  },

  'ollama:generate:context-out': async (serve) => {
    const { engine, requests } = engineOf([text('Hello')])
    const url = await serve(engine)

    const [before, last] = endOf(await linesOf(await generate(url)))
    const answer = await wholeOf(await generate(url, { ...question, stream: false }))

    expect(requests.map(({ returnTokens }) => returnTokens)).toEqual([true, true])
    expect([last.context, answer.context]).toEqual([
      [1, 2, 3],
      [1, 2, 3],
    ])
    for (const line of before) expect(line).not.toHaveProperty('context')
  },

  'ollama:generate:context-in': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    const some = await asked(url, engine, { ...question, context: [5, 0, 7] })
    const none = await asked(url, engine, { ...question, context: [] })

    // The context already contains the Modelfile's messages.
    expect(some.input).toEqual({ kind: 'text', prompt: [[5, 0, 7], 'Hello'], messages: [] })
    expect(none.input).toEqual({ kind: 'text', prompt: ['Hello'], messages: [] })
  },

  'ollama:generate:raw': async (serve) => {
    const { engine, requests } = engineOf([text('<think>'), text('Hm.')])
    const url = await serve(engine)

    const answer = await wholeOf(await generate(url, { ...question, raw: true, stream: false }))

    expect(requests[0]?.input).toEqual({ kind: 'text', prompt: ['Hello'], template: false })
    expect(requests[0]?.reasoning).toBeUndefined()
    expect(answer.response).toBe('<think>Hm.')
    expect(answer).not.toHaveProperty('context')
  },

  'ollama:generate:raw-without-context': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    for (const more of [{ system: 'Be kind.' }, { context: [1] }])
      await expectOllamaError(
        await generate(url, { ...question, raw: true, ...more }),
        400,
        'raw mode does not support template, system, or context',
      )
    const empty = { ...question, raw: true, system: '', context: [], template: '' }
    expect((await generate(url, empty)).status).toBe(200)
  },

  'ollama:generate:system': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    await asked(url, engine, { ...question, system: 'Be kind.' })
    await asked(url, engine, { ...question, system: '' })

    expect(conversations(engine)).toEqual([
      [
        ['system', 'Be kind.'],
        ['user', 'Hello'],
      ],
      [['user', 'Hello']],
    ])
  },

  'ollama:generate:thinking': async (serve) => {
    const url = await serve(engineOf([thought('Hm'), thought('.'), text('Hello'), text('.')]).engine)

    const lines = await linesOf(await generate(url))
    const answer = await wholeOf(await generate(url, { ...question, stream: false }))

    expect(lines.map((line) => [line.response, line.thinking])).toEqual([
      ['', 'Hm'],
      ['', '.'],
      ['Hello', undefined],
      ['.', undefined],
      ['', undefined],
    ])
    expect(Object.keys(lines[0] ?? {})).toEqual([...firstKeys, 'response', 'thinking', 'done'])
    expect(Object.keys(lines[2] ?? {})).not.toContain('thinking')
    expect([answer.response, answer.thinking]).toEqual(['Hello.', 'Hm.'])
  },

  'ollama:generate:load': async (serve) => {
    const { engine, told } = loader()
    const url = await serve(engine, mayLoad)

    for (const body of [{}, { prompt: '' }, { prompt: null, stream: true }, { stream: false }]) {
      const response = await generate(url, { model: 'tiny', ...body })

      expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
      const said = await wholeOf(response)
      expect(said).toEqual({
        model: 'tiny',
        created_at: time,
        response: '',
        done: true,
        done_reason: 'load',
      })
      expect(Object.keys(said)).toEqual([...firstKeys, 'response', 'done', 'done_reason'])
    }
    await generate(url, { model: 'tiny', keep_alive: '10m', options: { num_ctx: 2_048 } })

    expect(told).toHaveLength(5)
    expect(told.at(-1)).toEqual(['load', 'tiny', { contextSize: 2_048, keepAlive: 600_000 }])
    expect(engine.requests).toEqual([])
  },

  'ollama:generate:unload': async (serve) => {
    const { engine, told } = loader()
    const url = await serve(engine, mayLoad)

    for (const keep_alive of [0, -0, '0', '0s', '0m0s']) {
      const response = await generate(url, { model: 'tiny', stream: true, keep_alive })

      expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
      expect(await response.json()).toEqual({
        model: 'tiny',
        created_at: time,
        response: '',
        done: true,
        done_reason: 'unload',
      })
    }
    expect(told).toEqual(told.map(() => ['unload', 'tiny']))
    expect(told).toHaveLength(5)
  },

  'ollama:generate:render-only': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const body = { ...question, system: 'Be kind.', _debug_render_only: true }

    const response = await generate(url, body)

    expect(response.headers.get('content-type')).toMatch(/^application\/json/)
    expect(await response.json()).toEqual({
      model: 'tiny',
      created_at: time,
      response: '',
      done: false,
      _debug_info: { rendered_template: 'Be kind.\nHello' },
    })
    expect(engine.requests).toEqual([])
  },

  'ollama:generate:unsupported': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    await expectOllamaError(
      await generate(url, { ...question, images: ['AAAA'] }),
      400,
      expect.stringMatching(/^invalid images: An image is not supported by this model\.$/),
    )
    const { input } = await asked(url, engine, { ...question, template: '{{ .Prompt }}' })
    expect(input).toMatchObject({ template: '{{ .Prompt }}' })
    const none = { suffix: '', template: '', images: [], format: '', logprobs: false, top_logprobs: 3 }
    expect((await generate(url, { ...question, ...none })).status).toBe(200)
  },

  'ollama:generate:encoder': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine, {
      ...mayLoad,
      models: folderOf({ 'bert.gguf': [encoder, '2026-01-01'] }),
    })

    for (const prompt of ['Hello', ''])
      await expectOllamaError(
        await generate(url, { prompt, model: 'bert' }),
        400,
        '"bert" does not support generate',
      )
    expect(engine.requests).toEqual([])
    expect((await generate(url, { model: 'bert', keep_alive: 0 })).status).toBe(200)
  },

  'ollama:chat:streams-by-default': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    for (const stream of [undefined, null, true]) {
      const response = await chat(url, { ...hello, stream })

      expect(response.status).toBe(200)
      expect(response.headers.get('content-type')).toBe('application/x-ndjson')
      expect(response.headers.get('cache-control')).toContain('no-cache')
      expect(await response.text()).toMatch(/^(\{.*\}\n){3}$/)
    }
    const response = await chat(url, whole({}))
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
  },

  'ollama:chat:lines': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const lines = await linesOf(await chat(url))

    const [before, last] = endOf(lines)
    expect(before).toEqual([
      {
        model: 'tiny',
        created_at: time,
        message: { role: 'assistant', content: 'Hello' },
        done: false,
      },
      {
        model: 'tiny',
        created_at: time,
        message: { role: 'assistant', content: ' there.' },
        done: false,
      },
    ])
    expect(last.message).toEqual({ role: 'assistant', content: '' })
    for (const line of before) expect(Object.keys(line)).toEqual([...firstKeys, 'message', 'done'])
    for (const line of lines) expect(Object.keys(line.message)).toEqual(['role', 'content'])
  },

  'ollama:chat:last-line': async (serve) => {
    const { engine, requests } = engineOf([text('Hello')])
    const url = await serve(engine)

    const [, last] = endOf(await linesOf(await chat(url)))

    expect(last).not.toHaveProperty('context')
    expect(requests[0]).not.toHaveProperty('returnTokens')
    expect(last).toMatchObject({
      done: true,
      done_reason: 'stop',
      load_duration: 2_000_000,
      prompt_eval_count: 7,
      prompt_eval_duration: 500_000,
      eval_count: 1,
      eval_duration: 4_000_001,
    })
  },

  'ollama:chat:whole': async (serve) => {
    const url = await serve(engineOf([text('Hello'), text(' there.')]).engine)

    const response = await chat(url, whole({}))

    const answer = await wholeOf(response)
    expect(response.status).toBe(200)
    expect(Object.keys(answer)).toEqual([...firstKeys, 'message', 'done', 'done_reason', ...statistics])
    expect(answer).toMatchObject({
      model: 'tiny',
      created_at: time,
      message: { role: 'assistant', content: 'Hello there.' },
      done: true,
      done_reason: 'stop',
    })
  },

  'ollama:chat:stream-is-live': async (serve) => {
    const engine = scriptedEngine('word '.repeat(1_000), { delayMs: 5 })
    const url = await serve(engine)
    const leaving = new AbortController()

    const { body } = await callOllama(url, 'chat', hello, {}, leaving.signal)
    const { value } = await (body as ReadableStream<Uint8Array>).getReader().read()

    expect(new TextDecoder().decode(value)).toContain('"content":"word"')
    expect(engine.running).toBe(1)
    leaving.abort()
  },

  'ollama:chat:client-disconnects': async (serve) => {
    const engine = scriptedEngine('word '.repeat(2_000), { delayMs: 5 })
    const url = await serve(engine)
    const leaving = new AbortController()
    const answers = [hello, whole({})].map((body) => callOllama(url, 'chat', body, {}, leaving.signal))
    await answers[0]
    await expect.poll(() => engine.running, soon).toBe(2)

    leaving.abort()

    await expect(answers[1]).rejects.toThrow('aborted')
    await expect.poll(() => engine.running, soon).toBe(0)
  },

  'ollama:chat:load': async (serve) => {
    const { engine, told } = loader()
    const url = await serve(engine)

    for (const body of [{}, { messages: [] }, { messages: null, stream: true }, { stream: false }]) {
      const response = await chat(url, { model: 'tiny', ...body })

      expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
      const said = await wholeOf(response)
      expect(said).toEqual({
        model: 'tiny',
        created_at: time,
        message: { role: 'assistant', content: '' },
        done: true,
        done_reason: 'load',
      })
      expect(Object.keys(said)).toEqual([...firstKeys, 'message', 'done', 'done_reason'])
    }
    expect(told).toHaveLength(4)
    expect(engine.requests).toEqual([])
  },

  'ollama:chat:unload': async (serve) => {
    const { engine, told } = loader()
    const url = await serve(engine, mayLoad)

    const response = await chat(url, { model: 'tiny', messages: [], stream: true, keep_alive: 0 })

    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(await response.json()).toEqual({
      model: 'tiny',
      created_at: time,
      message: { role: 'assistant', content: '' },
      done: true,
      done_reason: 'unload',
    })
    expect(told).toEqual([['unload', 'tiny']])
  },

  'ollama:chat:roles': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    await asked(
      url,
      engine,
      saying(
        { role: 'System', content: 'a' },
        { role: 'context', content: 'b' },
        { role: 'USER', content: 'c' },
        { role: '', content: 'd' },
        { content: 'e' },
        { role: 'user' },
      ),
    )

    expect(conversations(engine)[0]).toEqual([
      ['system', 'a'],
      ['context', 'b'],
      ['user', 'c'],
      ['user', 'd'],
      ['user', 'e'],
      ['user', ''],
    ])
  },

  'ollama:chat:developer-is-system': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    const said = await asked(url, engine, saying({ role: 'Developer', content: 'Be kind.' }))

    expect(said).toEqual(await asked(url, engine, saying({ role: 'system', content: 'Be kind.' })))
  },

  'ollama:chat:system-among-messages': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const system = { role: 'system', content: 'Be kind.' }
    const user = { role: 'user', content: 'Hello' }

    for (const messages of [
      [system, user],
      [user, system],
      [user, system, user],
    ])
      await asked(url, engine, saying(...messages))

    const roles = conversations(engine).map((messages) => messages.map(([role]) => role).join(' '))
    expect(roles).toEqual(['system user', 'user system', 'user system user'])
  },

  'ollama:chat:prefill': async (serve) => {
    const engine = scriptedEngine(' 42')
    const url = await serve(engine)
    const prefill = { role: 'assistant', content: 'The answer is' }

    const answer = await wholeOf(await chat(url, saying(...hello.messages, prefill)))

    expect(answer.message).toEqual({ role: 'assistant', content: ' 42' })
    expect(conversations(engine)[0]?.at(-1)).toEqual(['assistant', 'The answer is'])
  },

  'ollama:chat:earlier-reasoning': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const user = hello.messages[0] as object

    const { input } = await asked(
      url,
      engine,
      saying(user, { role: 'assistant', content: 'Hi.', thinking: 'Hm.' }, user),
    )

    expect(toTemplateMessages(input)[1]).toEqual({
      role: 'assistant',
      content: [
        { type: 'reasoning', text: 'Hm.' },
        { type: 'text', text: 'Hi.' },
      ],
    })
  },

  'ollama:chat:images-are-rejected': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    const response = await chat(url, saying(...hello.messages, { content: 'What?', images: ['AAAA'] }))

    await expectOllamaError(response, 400, expect.stringMatching(/^invalid messages\[1\]\.images: .*image/i))
    expect(engine.requests).toEqual([])
    await asked(url, engine, saying({ content: 'What?', images: [] }))
  },

  'ollama:chat:unsupported': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    await expectOllamaError(
      await chat(url, withOptions({ typical_p: 0.5 })),
      400,
      expect.stringMatching(/^invalid options\.typical_p: .* not supported yet\.$/),
    )
    expect(engine.requests).toEqual([])
  },

  'ollama:chat:encoder': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine, {
      ...mayLoad,
      models: folderOf({ 'bert.gguf': [encoder, '2026-01-01'] }),
    })

    for (const messages of [hello.messages, []])
      await expectOllamaError(
        await chat(url, { messages, model: 'Bert:latest' }),
        400,
        '"Bert:latest" does not support chat',
      )
    expect(engine.requests).toEqual([])
    expect((await chat(url, { model: 'Bert:latest', keep_alive: 0 })).status).toBe(200)
  },

  'ollama:chat:thinking': async (serve) => {
    const url = await serve(engineOf([thought('Hm'), thought('.'), text('Hello'), text('.')]).engine)

    const lines = await linesOf(await chat(url))
    const answer = await wholeOf(await chat(url, whole({})))

    expect(lines.map((line) => line.message)).toEqual([
      { role: 'assistant', content: '', thinking: 'Hm' },
      { role: 'assistant', content: '', thinking: '.' },
      { role: 'assistant', content: 'Hello' },
      { role: 'assistant', content: '.' },
      { role: 'assistant', content: '' },
    ])
    expect(answer.message).toEqual({ role: 'assistant', content: 'Hello.', thinking: 'Hm.' })
  },

  'ollama:clients:no-error-key': async (serve) => {
    const url = await serve(engineOf([thought('Hm.'), text('Hello')]).engine)

    const lines = [
      ...(await linesOf(await chat(url))),
      ...(await linesOf(await generate(url))),
      await wholeOf(await chat(url, whole({}))),
      await wholeOf(await chat(url, { model: 'tiny' })),
      await wholeOf(await show(url, { model: 'tiny' })),
      await wholeOf(await get(url, 'tags')),
    ]

    for (const line of lines) expect(line).not.toHaveProperty('error')
  },
} satisfies Record<OllamaRequirementId, Check>
