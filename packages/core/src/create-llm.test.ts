import { existsSync, readdirSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { createLlm } from './create-llm.ts'
import type { EmbedRequest } from './engine/embeddings.ts'
import type { Engine, EngineCall } from './engine/engine.ts'
import { collect, uncached } from './engine/events.ts'
import type { GenerateRequest } from './engine/request.ts'
import { LlmError } from './errors.ts'
import { internals } from './llm.ts'
import { type ScriptedEngine, scriptedEngine } from './testing/scripted-engine.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'modelmount-llm-'))
})
afterEach(() => rm(folder, { recursive: true }))

test('chat() resolves with the answer, its usage and its timings', async () => {
  const llm = await createLlm({ engine: scriptedEngine('Hello there.') })

  const answer = await llm.chat('Hi')

  expect(answer).toMatchObject({
    text: 'Hello there.',
    finishReason: 'stop',
    usage: { inputTokens: 1, reusedTokens: 0, ...uncached, outputTokens: 2 },
    timings: { loadMs: 0, promptMs: 0, generateMs: expect.any(Number) },
    fingerprint: 'fp_scripted',
  })
})

test('a prompt string becomes a user message', async () => {
  const engine = scriptedEngine('Hello.')
  const llm = await createLlm({ engine, models: [] })

  await llm.chat('Hi', { model: 'any' })

  expect(engine.requests).toEqual([
    {
      model: 'any',
      input: { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] },
      sampling: {},
      reasoning: 'auto',
    },
  ])
})

test('a conversation and all chat options reach the engine', async () => {
  const engine = scriptedEngine('Hello.')
  const llm = await createLlm({ engine })

  await llm.chat(
    [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Hel' },
    ],
    { model: 'team/tiny', maxTokens: 5, stop: ['\n'], temperature: 0, seed: 7 },
  )

  expect(engine.requests).toEqual([
    {
      model: 'team/tiny',
      input: {
        kind: 'chat',
        messages: [
          { role: 'system', content: [{ type: 'text', text: 'Be brief.' }] },
          { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
          { role: 'assistant', content: [{ type: 'text', text: 'Hel' }] },
        ],
      },
      maxTokens: 5,
      stop: ['\n'],
      sampling: { temperature: 0, seed: 7 },
      reasoning: 'auto',
    },
  ])
})

test('a stream yields the text in pieces', async () => {
  const llm = await createLlm({ engine: scriptedEngine(['Hel', 'lo', ' there.']) })
  const pieces: string[] = []

  for await (const piece of llm.chat('Hi', { stream: true })) pieces.push(piece)

  expect(pieces).toEqual(['Hel', 'lo', ' there.'])
})

test('a stream without a reader does not call the engine', async () => {
  const engine = scriptedEngine('Hello.')
  const llm = await createLlm({ engine })

  llm.chat('Hi', { stream: true })
  await new Promise((resolve) => setImmediate(resolve))

  expect(engine.requests).toEqual([])
})

test('breaking out of a stream ends the answer in the engine', async () => {
  const engine = scriptedEngine('one two three')
  const llm = await createLlm({ engine })

  for await (const _piece of llm.chat('Count.', { stream: true })) break
  await new Promise((resolve) => setImmediate(resolve))

  expect(engine.requests).toHaveLength(1)
  expect(engine.running).toBe(0)
})

test('an engine error rejects a call without streaming', async () => {
  const error = new LlmError('overloaded', 'Too many calls.')
  const llm = await createLlm({ engine: scriptedEngine(['Hel', error]) })

  const answer = llm.chat('Hi')

  await expect(answer).rejects.toBe(error)
})

test('an engine error is thrown to the reader of a stream after the text before it', async () => {
  const error = new LlmError('upstream', 'The process ended.')
  const llm = await createLlm({ engine: scriptedEngine(['Hel', error]) })
  const pieces: string[] = []

  const reading = (async () => {
    for await (const piece of llm.chat('Hi', { stream: true })) pieces.push(piece)
  })()

  await expect(reading).rejects.toBe(error)
  expect(pieces).toEqual(['Hel'])
})

test('an aborted call without streaming rejects with an AbortError', async () => {
  const controller = new AbortController()
  const engine = scriptedEngine('Hello there.', { delayMs: 60_000 })
  const llm = await createLlm({ engine })
  const answer = llm.chat('Hi', { model: 'any', signal: controller.signal })
  await new Promise((resolve) => setImmediate(resolve))

  controller.abort()

  await expect(answer).rejects.toMatchObject({ name: 'AbortError' })
  expect(engine.running).toBe(0)
})

test('an aborted stream ends without an error', async () => {
  const controller = new AbortController()
  const engine = scriptedEngine('one two three')
  const llm = await createLlm({ engine })
  const pieces: string[] = []

  for await (const piece of llm.chat('Count.', { stream: true, signal: controller.signal })) {
    pieces.push(piece)
    controller.abort()
  }

  expect(pieces).toEqual(['one'])
  expect(engine.running).toBe(0)
})

test('a call with an aborted signal rejects with an AbortError', async () => {
  const llm = await createLlm({ engine: scriptedEngine('Hello.') })

  const answer = llm.chat('Hi', { signal: AbortSignal.abort() })

  await expect(answer).rejects.toMatchObject({ name: 'AbortError' })
})

test('without a model name, the only model of the app is used', async () => {
  await writeFile(join(folder, 'mine.gguf'), 'GGUF')
  const engine = scriptedEngine('Hello.')
  const llm = await createLlm({ engine, models: folder })

  await llm.chat('Hi')

  expect(engine.requests[0]?.model).toBe('mine:latest')
})

test('without a model name and without models of the app, the built-in model is used', async () => {
  const engine = scriptedEngine('Hello.')
  const llm = await createLlm({ engine, models: folder })

  await llm.chat('Hi')

  expect(engine.requests[0]?.model).toBe('tiny:latest')
})

test('without a model name and with several models of the app, the call rejects', async () => {
  await writeFile(join(folder, 'one.gguf'), 'GGUF')
  await writeFile(join(folder, 'two.gguf'), 'GGUF')
  const llm = await createLlm({ models: folder })

  const answer = llm.chat('Hi')

  await expect(answer).rejects.toMatchObject({ code: 'invalid_request', details: { param: 'model' } })
  expect(llm.loaded()).toEqual([])
})

test('a custom engine gets the model name "default" if there are several models', async () => {
  await writeFile(join(folder, 'one.gguf'), 'GGUF')
  await writeFile(join(folder, 'two.gguf'), 'GGUF')
  const engine = scriptedEngine('Hello.')
  const llm = await createLlm({ engine, models: folder })

  await llm.chat('Hi')

  expect(engine.requests[0]?.model).toBe('default')
})

test('lists the models of the folder and the built-in model', async () => {
  await writeFile(join(folder, 'mine.gguf'), 'GGUF')
  const llm = await createLlm({ engine: scriptedEngine(''), models: folder })

  const models = await llm.models.list()

  expect(models.map(({ name, isBuiltIn }) => [name, isBuiltIn])).toEqual([
    ['mine:latest', false],
    ['tiny:latest', true],
  ])
})

test('generate yields the events of the engine', async () => {
  const llm = await createLlm({ engine: scriptedEngine('Hello.') })

  const generation = await llm.generate(
    {
      model: 'any',
      input: { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] },
    },
    { signal: new AbortController().signal },
  )

  const types: string[] = []
  for await (const { type } of generation) types.push(type)
  expect(generation.model).toBe('any')
  expect(types).toEqual(['start', 'text', 'end'])
})

test('generate needs neither a signal nor a model, and collect joins the events', async () => {
  const llm = await createLlm({ engine: scriptedEngine(['Hel', 'lo.']), models: folder })

  const generation = await llm.generate({ input: { kind: 'text', prompt: ['Hi'] } })
  const { text, finishReason } = await collect(generation)

  expect([generation.model, text, finishReason]).toEqual(['tiny:latest', 'Hello.', 'stop'])
})

test('the Modelfile defaults of a model apply to every request, and an invalid parameter is logged once', async () => {
  const scripted = scriptedEngine('Hi')
  const sizes: unknown[] = []
  const engine = {
    ...scripted,
    embed: (request: EmbedRequest, call: EngineCall) => {
      sizes.push(request.load?.defaultContextSize)
      return scripted.embed(request, call)
    },
  }
  const warnings: string[] = []
  const logger = { warn: (_: object, message: string) => void warnings.push(message), error: () => {} }
  const llm = await createLlm({ models: folder, engine, logger })
  const spec = {
    ...{ name: 'bob', from: 'tiny', system: 'You are Bob.', template: '{{ .Prompt }}!' },
    parameters: { temperature: 0, num_ctx: 512, top_q: 7 },
  }
  for await (const _step of llm.models.create(spec));

  await llm.chat('Hello', { model: 'bob' })
  const request: GenerateRequest = { model: 'Bob:latest', input: { kind: 'text', prompt: ['Hello'] } }
  const call = { signal: new AbortController().signal }
  await llm.countTokens(request, call)
  await llm.render(request, call)
  await llm.load('bob', { keepAlive: 5 })
  await llm.embed({ model: 'bob', inputs: ['Hello'], load: { keepAlive: 5 } })

  expect(sizes).toEqual([512])
  expect(engine.requests[0]).toMatchObject({
    input: {
      template: '{{ .Prompt }}!',
      messages: [{ role: 'system', content: [{ text: 'You are Bob.' }] }, { role: 'user' }],
    },
    sampling: { temperature: 0 },
    load: { defaultContextSize: 512 },
  })
  expect(warnings).toEqual([expect.stringContaining('`top_q`')])
})

test('the engine counts the tokens of a prompt', async () => {
  const llm = await createLlm({ engine: scriptedEngine('Hello.') })
  const message = { role: 'user', content: [{ type: 'text', text: 'Hi' }] } as const

  const count = await llm.countTokens(
    { model: 'any', input: { kind: 'chat', messages: [message, message] } },
    { signal: new AbortController().signal },
  )

  expect(count).toBe(2)
})

test('the engine computes embeddings, scores and tokens, with a default model and a default tenant', async () => {
  const asked: unknown[] = []
  const scripted = scriptedEngine('Hello.')
  const engine: Engine = {
    ...scripted,
    embed: (request, { tenant, background }) => {
      asked.push([request, { tenant, background }])
      return scripted.embed(request, call)
    },
  }
  const call = { signal: new AbortController().signal }
  const llm = await createLlm({ engine, models: folder })
  const caller = { id: 'ann', tenant: 'team', scopes: [] }

  const { embeddings } = await llm.embed({ inputs: ['Hi'] })
  await llm.embed({ model: 'other', inputs: [] }, { ...call, caller, background: true })
  const { scores } = await llm.rerank({ query: 'Hi', documents: ['Hi there.'] })
  const tokens = await llm.tokenize({ text: 'Hi' })

  expect(embeddings).toHaveLength(1)
  expect(scores).toEqual([1])
  expect(await llm.detokenize({ tokens })).toBe('Hi')
  expect(asked).toEqual([
    [
      { model: 'tiny:latest', inputs: ['Hi'] },
      { tenant: '', background: false },
    ],
    [
      { model: 'other', inputs: [] },
      { tenant: 'team', background: true },
    ],
  ])
})

test('loaded() and close() call the engine', async () => {
  let closed = false
  const memory = { contextSize: 4096, sizeBytes: 1_000, gpuBytes: 0 }
  const model = { name: 'tiny:latest', state: 'ready', expiresAt: 'never', ...memory } as const
  const engine = {
    ...scriptedEngine('Hello.'),
    loaded: () => [model],
    close: async () => {
      closed = true
    },
  }
  const llm = await createLlm({ engine })

  const loaded = llm.loaded()
  await llm.close()

  expect(loaded).toEqual([model])
  expect(closed).toBe(true)
})

test('an invalid option rejects with a TypeError', async () => {
  const llm = createLlm({ local: { threads: 0 } })

  await expect(llm).rejects.toThrow(TypeError)
})

test('rejects a path of models that does not exist', async () => {
  await expect(createLlm({ engine: scriptedEngine('Hello.'), models: ['no-such-folder'] })).rejects.toThrow(
    new TypeError('Expected `models` to be a folder or a GGUF file, but no-such-folder does not exist.'),
  )
})

test('many calls can share a signal without a warning', async () => {
  const llm = await createLlm({ engine: scriptedEngine('Hello.', { delayMs: 1 }), models: [] })
  const warnings: Error[] = []
  const keep = (warning: Error) => warnings.push(warning)
  process.on('warning', keep)
  const { signal } = new AbortController()

  await Promise.all(Array.from({ length: 30 }, () => llm.chat('Hi', { model: 'any', signal })))
  await new Promise(setImmediate)
  process.off('warning', keep)

  expect(warnings).toEqual([])
})

test('return() on a stream does not wait for the next piece', async () => {
  const engine = scriptedEngine(['one', 'two'], { delayMs: 60_000 })
  const llm = await createLlm({ engine, models: [] })
  const stream = llm.chat('Hi', { model: 'any', stream: true })[Symbol.asyncIterator]()
  void stream.next()
  await new Promise(setImmediate)
  await new Promise(setImmediate)

  await stream.return?.()
  await new Promise(setImmediate)

  expect(engine.running).toBe(0)
})

test('keys and revocations are stored in a database file in the folder of models', async () => {
  const first = await createLlm({ engine: scriptedEngine(''), models: folder, auth: 'keys' })
  const { key, secret } = await first.keys.create({ name: 'kept' })
  expect(await first.keys.revoke(key.id)).toMatchObject({ status: 'revoked' })
  await first.close()
  const second = await createLlm({ engine: scriptedEngine(''), models: folder, auth: 'keys' })
  onTestFinished(() => second.close())

  expect((await second.keys.list()).map(({ name }) => name)).toEqual(['kept'])
  await expect(second.keys.authenticate(secret)).rejects.toMatchObject({ code: 'authentication' })
  expect(second[internals].access.auth).toBe('keys')
  expect(existsSync(join(folder, 'modelmount.db'))).toBe(true)
})

test('without keys no database is opened, and the methods of keys reject with the missing option', async () => {
  const llm = await createLlm({ engine: scriptedEngine(''), models: folder })

  await expect(llm.keys.list()).rejects.toThrow('Expected the option `database` of createLlm()')
  await llm.close()
  expect(readdirSync(folder)).toEqual([])
})

test('a function wraps the local engine, which is closed by the wrapper', async () => {
  const closed: string[] = []
  const llm = await createLlm({
    models: folder,
    engine: async (local) => ({
      ...scriptedEngine('Wrapped.'),
      close: async () => {
        closed.push(local.constructor.name)
        await local.close()
      },
    }),
  })

  const { text } = await llm.chat('Hi')
  await llm.close()

  expect(text).toBe('Wrapped.')
  expect(closed).toEqual(['LocalEngine'])
})

test('a function that returns no engine is rejected', async () => {
  const engine = (() => undefined) as unknown as () => Engine

  await expect(createLlm({ models: folder, engine })).rejects.toThrow(
    'Expected `engine` to have the method generate()',
  )
})

test('a model that the engine finds has its defaults, its details and its full name', async () => {
  const engine: ScriptedEngine = {
    ...scriptedEngine('Hello.'),
    findModel: (name) =>
      name === 'far'
        ? {
            name: 'far:latest',
            ...{ path: '', sizeBytes: 0, modifiedAt: new Date(0), digest: '', isBuiltIn: false },
            defaults: { parameters: { temperature: 0.25 }, messages: [], license: [] },
            details: {
              ...{ architecture: 'llama', parameterCount: 0, parameterSize: '', quantization: 'unknown' },
              ...{ capabilities: ['completion', 'thinking'], metadata: {}, tensors: [] },
            },
          }
        : undefined,
  }
  const llm = await createLlm({ engine, models: folder })
  const client = llm.as({ id: 'ann' })

  await llm.chat('Hi', { model: 'far' })
  const found = await client.models.get('far')

  expect(engine.requests).toMatchObject([{ model: 'far', sampling: { temperature: 0.25 } }])
  expect(found.name).toBe('far:latest')
  expect((await client.models.details(found)).capabilities).toEqual(['completion', 'thinking'])
  await expect(client.models.get('other')).rejects.toThrow('model "other" not found')
})
