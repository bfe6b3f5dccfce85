/**
 * One caller with the smallest scope sent another `num_ctx` or a `keep_alive` of 0 with each call, or named more
 * models in turn than could be loaded. Each time, a model was reloaded, and the other callers waited. Ollama reloads in the same way: two clients with
 * different `num_ctx` take turns in reloading its model (ollama/ollama: server/sched.go, `needsReload`).
 */
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Caller, createLlm, type Llm, type LocalOptions, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'
import { type Listening, listen } from '../../support/listen.ts'
import { noiseModel } from '../../support/models.ts'

const contextSize = 256
const models = emptyFolder()
const callers: Readonly<Record<string, Caller>> = {
  ann: { id: 'ann' },
  eve: { id: 'eve', scopes: ['inference'] },
  root: { id: 'root', scopes: ['inference', 'models'] },
}
type Name = 'ann' | 'eve' | 'root'

interface App {
  readonly llm: Llm
  readonly server: Listening
}

async function start(reloadCooldown: '1h' | '1s'): Promise<App> {
  const llm = await createLlm({
    models,
    auth: 'host',
    local: { contextSize, maxContextSize: 4_096, reloadCooldown },
  })
  const authenticate = ({ headers }: { headers: NodeJS.Dict<string | string[]> }) =>
    callers[String(headers['x-user'])]
  return { llm, server: await listen(toNodeHandler(routesFor(), llm, { authenticate })) }
}

async function stop({ llm, server }: App): Promise<void> {
  await server.close()
  await llm.close()
}

let app: App

const post = (name: Name, path: string, body: object, signal?: AbortSignal): Promise<Response> =>
  fetch(`${app.server.url}/api/${path}`, {
    method: 'POST',
    headers: { 'x-user': name },
    body: JSON.stringify({ model: 'tiny', stream: false, ...body }),
    signal: signal ?? null,
  })
const generate = (name: Name, options: object = {}, fields: object = {}, signal?: AbortSignal) =>
  post(name, 'generate', { prompt: 'Hello', options: { num_predict: 2, ...options }, ...fields }, signal)
const errorOf = async (response: Response): Promise<unknown> => {
  const { error } = (await response.json()) as { readonly error?: unknown }
  return { status: response.status, error }
}
const loaded = () => {
  const [{ processId, contextSize, expiresAt } = {}, ...others] = app.llm.loaded()
  expect(others).toEqual([])
  return { processId, contextSize, expiresAt }
}
const minutesLeft = (): number => (Number(loaded().expiresAt) - Date.now()) / 60_000

/** Load options of Ollama that have no effect here. */
const hardware = { num_gpu: 0, main_gpu: 0, num_thread: 1, num_batch: 8, use_mmap: false, use_mlock: true }

/** Needs about 400 tokens, so that it fits a context of 512 tokens, but not the loaded one. */
const longText = 'fox '.repeat(130)
const conversation = [
  { role: 'user', content: longText },
  { role: 'assistant', content: 'Yes.' },
  { role: 'user', content: 'Hello' },
]

describe('without the scope models', () => {
  beforeAll(async () => {
    app = await start('1h')
  })

  beforeEach(() => app.llm.load('tiny'))

  afterAll(() => stop(app))

  test('no call reloads or unloads the model that the others use', async () => {
    const { processId } = loaded()

    for (const num_ctx of [64, 128, 512, 1_024, 8_192])
      for (const keep_alive of [0, '1s', -1]) {
        expect((await generate('eve', { num_ctx, ...hardware }, { keep_alive })).status).toBe(200)
        expect((await generate('ann')).status).toBe(200)

        expect(loaded()).toMatchObject({ processId, contextSize })
        expect(minutesLeft()).toBeCloseTo(5, 0)
      }
  })

  test('the first call does not choose how the model is loaded, either', async () => {
    await app.llm.unload('tiny')

    expect((await generate('eve', { num_ctx: 64 }, { keep_alive: 0 })).status).toBe(200)

    expect(loaded()).toMatchObject({ contextSize })
    expect(minutesLeft()).toBeCloseTo(5, 0)
  })

  test('a caller that the app names in process chooses no more than one of a route', async () => {
    const { processId } = loaded()
    const client = app.llm.as({ id: 'eve' })
    const load = { contextSize: 64, keepAlive: 0 }

    await client.countTokens({ model: 'tiny', input: { kind: 'text', prompt: ['Hello'] }, load })
    await client.tokenize({ model: 'tiny', text: 'Hello', load })
    await client.load('tiny', load)
    await expect(client.unload('tiny')).rejects.toMatchObject({ code: 'permission' })

    expect(loaded()).toMatchObject({ processId, contextSize })
  })

  test.each([
    ['generate', { prompt: longText }],
    ['chat', { messages: conversation }],
  ])(
    'in /api/%s, a prompt that fits only the requested context is a 400 with the reason',
    async (path, body) => {
      const { processId } = loaded()

      expect(await errorOf(await post('eve', path, { ...body, options: { num_ctx: 1_024 } }))).toEqual({
        status: 400,
        error: expect.stringMatching(
          /^the prompt is longer than the context length currently available to the model: it has \d{3} tokens, and the context holds 256\. A `num_ctx` of 1024 requires the scope 'models', which the caller lacks\. .*`local\.contextSize`/,
        ),
      })
      expect(loaded()).toMatchObject({ processId, contextSize })
    },
  )

  test.each([undefined, 64, 256])(
    'with num_ctx %s, a conversation loses its oldest messages, as before',
    async (num_ctx) => {
      const response = await post('eve', 'chat', {
        messages: conversation,
        options: { num_ctx, num_predict: 2 },
      })

      expect(response.status).toBe(200)
      expect(await response.json()).toMatchObject({
        prompt_eval_count: expect.toSatisfy((tokens: number) => tokens < 64),
      })
    },
  )

  test('a request without a prompt cannot unload the model, nor ask for a larger context', async () => {
    const { processId } = loaded()

    expect(await errorOf(await post('eve', 'generate', { keep_alive: 0 }))).toEqual({
      status: 403,
      error: "To unload a model, a caller needs the scope 'models'.",
    })
    expect(await errorOf(await post('eve', 'chat', { options: { num_ctx: 512 } }))).toEqual({
      status: 403,
      error: expect.stringContaining("A `num_ctx` of 512 requires the scope 'models'"),
    })
    const smaller = await post('eve', 'generate', { keep_alive: '1s', options: { num_ctx: 64 } })
    expect(await smaller.json()).toMatchObject({ done_reason: 'load' })
    expect(loaded()).toMatchObject({ processId, contextSize })
    expect(minutesLeft()).toBeCloseTo(5, 0)
  })

  test('calls without a context size do not wait in the smaller context of a caller with the scope', async () => {
    await app.llm.unload('tiny')
    expect((await generate('root', { num_ctx: 64 })).status).toBe(200)
    expect(loaded()).toMatchObject({ contextSize: 64 })

    expect((await generate('ann')).status).toBe(200)

    expect(loaded()).toMatchObject({ contextSize })
  })

  test('while a caller with the scope waits to reload the model, the others are answered', async () => {
    const { processId } = loaded()
    const leaving = new AbortController()
    const waiting = generate('root', { num_ctx: 64 }, {}, leaving.signal)
    const outcome = waiting.then(
      () => 'answered',
      () => 'aborted',
    )

    for (let call = 0; call < 5; call++) expect((await generate('ann')).status).toBe(200)

    expect(loaded()).toMatchObject({ processId, contextSize })
    leaving.abort()
    expect(await outcome).toBe('aborted')
  })
})

describe('with the scope models', () => {
  beforeAll(async () => {
    app = await start('1s')
  })

  beforeEach(() => app.llm.unload('tiny'))

  afterAll(() => stop(app))

  test('the first call chooses the context and the keep-alive', async () => {
    expect((await generate('root', { num_ctx: 64 }, { keep_alive: -1 })).status).toBe(200)

    expect(loaded()).toMatchObject({ contextSize: 64, expiresAt: 'never' })
    expect(await (await post('root', 'generate', { keep_alive: 0 })).json()).toMatchObject({
      done_reason: 'unload',
    })
    expect(app.llm.loaded()).toEqual([])
  })

  test('another context is loaded when the model has served for a second', async () => {
    await app.llm.load('tiny')
    const { processId } = loaded()
    const loadedAt = performance.now()

    expect((await generate('root', { num_ctx: 64 })).status).toBe(200)

    expect(loaded()).toMatchObject({ contextSize: 64 })
    expect(loaded().processId).not.toBe(processId)
    // The load was complete shortly before `loadedAt`.
    expect(performance.now() - loadedAt).toBeGreaterThan(900)
  })

  test('callers with different contexts do not reload the model with each call', async () => {
    await app.llm.load('tiny')
    const processIds = new Set([loaded().processId])
    const ask = async (name: Name, options: object): Promise<void> => {
      expect((await generate(name, options)).status).toBe(200)
      processIds.add(loaded().processId)
    }

    await Promise.all(
      Array.from({ length: 10 }, (_, call) => (call % 2 ? ask('ann', {}) : ask('root', { num_ctx: 64 }))),
    )

    // Two, or three if a call of Ann's arrives more than a second after the load.
    expect(processIds.size).toBeLessThanOrEqual(3)
  })
})

describe('with more models than can be loaded', () => {
  let folder: string
  let llm: Llm

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'models-'))
    for (const name of ['a', 'b']) await copyFile(noiseModel, join(folder, `${name}.gguf`))
  })

  afterEach(() => llm.close())

  afterAll(() => rm(folder, { recursive: true }))

  const open = async (local: LocalOptions): Promise<void> => {
    llm = await createLlm({ models: folder, local: { contextSize, ...local } })
  }
  const ask = async (name: Name, model: string, signal = new AbortController().signal) => {
    const input = { kind: 'text', prompt: ['Hello'] } as const
    for await (const _event of await llm
      .as(callers[name] as Caller)
      .generate({ model, input, maxTokens: 1 }, { signal }));
  }
  const processOf = (model: string) => llm.loaded().find(({ name }) => name === `${model}:latest`)?.processId

  test('a call for another model evicts no freshly loaded one, whose callers do not wait', async () => {
    await open({ maxLoadedModels: 1, reloadCooldown: '1h' })
    await ask('ann', 'a')
    const processId = processOf('a')
    const leaving = new AbortController()
    const waiting = ask('eve', 'b', leaving.signal)

    for (let call = 0; call < 5; call++) await ask('ann', 'a')

    expect(processOf('a')).toBe(processId)
    leaving.abort()
    await waiting
    expect(llm.loaded().map(({ name }) => name)).toEqual(['a:latest'])
  })

  test('then the call is answered', async () => {
    await open({ maxLoadedModels: 1, reloadCooldown: '1s' })
    await ask('ann', 'a')

    await ask('eve', 'b')

    expect(llm.loaded().map(({ name }) => name)).toEqual(['b:latest'])
  })
})

test('two names of the same weights, with different contexts, share the larger one', async () => {
  app = await start('1s')
  for (const [name, num_ctx] of Object.entries({ short: 64, long: 512 }))
    for await (const _step of app.llm.models.create({ name, from: 'tiny', parameters: { num_ctx } }));
  const ask = async (model: string): Promise<number | undefined> => {
    expect((await generate('eve', {}, { model })).status).toBe(200)
    return loaded().processId
  }

  await ask('short')
  expect(loaded()).toMatchObject({ contextSize: 64 })
  const processId = await ask('long')
  expect(loaded()).toMatchObject({ contextSize: 512 })

  for (const model of ['short', 'long', 'short']) expect(await ask(model)).toBe(processId)
  await stop(app)
})
