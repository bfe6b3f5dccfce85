/** Every method of Ollama's own client, including those that change models, with a local registry. */
import { createHash } from 'node:crypto'
import { readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { createLlm, type Llm } from '@modelmount/core'
import { modelPath } from '@modelmount/tiny-model'
import { type AbortableAsyncIterator, Ollama, type ProgressResponse, type Tool } from 'ollama'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hasDockerRegistry, startDockerRegistry } from '../support/docker-registry.mjs'
import { emptyFolder } from '../support/empty-folder.ts'
import { type Listening, listen } from '../support/listen.ts'
import { encoderModel } from '../support/models.ts'
import { SmallRegistry } from '../support/registry.ts'
import { keys, mounts } from './mounts.ts'

interface App {
  readonly client: Ollama
  readonly url: string
  /** `host:port` */
  readonly registry: string
}

const greeting = 'Hello! How can I help you?'
const hello = [{ role: 'user', content: 'Hello' }]
const greedy = { temperature: 0 }
const headers = { authorization: `Bearer ${keys.right}` }

const weather: Tool = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'Get the weather',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
}

/** Checks by method name. Each has separate models, so that none depends on another. */
const methods: Readonly<Record<string, (app: App) => Promise<void>>> = {
  generate: async ({ client }) => {
    const request = { model: 'tiny', prompt: 'Hello', options: greedy }

    const whole = await client.generate(request)
    const parts = await collect(client.generate({ ...request, stream: true }))

    expect(whole).toMatchObject({ response: greeting, done: true, done_reason: 'stop' })
    expect(parts.map(({ response }) => response).join('')).toBe(greeting)
    expect(parts.at(-1)).toMatchObject({ done: true, eval_count: whole.eval_count })
  },

  chat: async ({ client }) => {
    const question = { role: 'user', content: 'What is the weather in Paris?' }
    const request = { model: 'tiny', tools: [weather], options: greedy }

    const { message } = await client.chat({ ...request, messages: [question] })
    const result = { role: 'tool', content: 'sunny', tool_name: 'get_weather' }
    const answer = await client.chat({ ...request, messages: [question, message, result] })
    const quiet = await client.chat({ model: 'tiny', messages: hello, think: false, options: greedy })

    expect(message.tool_calls).toMatchObject([
      { function: { name: 'get_weather', arguments: { city: 'Paris' } } },
    ])
    expect(message.thinking).not.toBe('')
    expect(answer.message.content).toContain('sunny')
    expect(quiet.message).toEqual({ role: 'assistant', content: greeting })
  },

  abort: async ({ client }) => {
    const song = [
      { role: 'user', content: 'Sing.' },
      { role: 'assistant', content: Array(60).fill('la').join(' ') },
    ]
    const parts = await client.chat({ model: 'tiny', messages: song, stream: true })
    const read = async (): Promise<void> => {
      for await (const _ of parts) client.abort()
    }

    await expect(read()).rejects.toMatchObject({ name: 'AbortError' })
  },

  encodeImage: async ({ client }) => {
    const images = [await client.encodeImage(new Uint8Array([137, 80, 78, 71]))]

    await expect(
      client.chat({ model: 'tiny', messages: [{ role: 'user', content: 'What is it?', images }] }),
    ).rejects.toMatchObject({
      name: 'ResponseError',
      status_code: 400,
      error: expect.stringMatching(/image/),
    })
  },

  embed: async ({ client }) => {
    const one = await client.embed({ model: 'bert', input: 'hello world' })
    const two = await client.embed({ model: 'bert', input: ['b', 'hello world'], truncate: false })

    expect([one.embeddings.length, one.prompt_eval_count]).toEqual([1, 4])
    expect(one.embeddings[0]?.[0]).toBeCloseTo(0.0125118345, 3)
    expect(two.embeddings).toHaveLength(2)
  },

  embeddings: async ({ client }) => {
    expect((await client.embeddings({ model: 'bert', prompt: 'hello world' })).embedding).toHaveLength(64)
  },

  create: async ({ client, url }) => {
    const bytes = readFileSync(modelPath)
    const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`

    // The client has no method for blobs, and its types lack `files`.
    const blob = await fetch(`${url}/api/blobs/${digest}`, { method: 'POST', headers, body: bytes })
    const request = { model: 'a-file', files: { 'tiny.gguf': digest }, stream: true as const }
    const parts = await collect(client.create(request))
    const whole = await client.create({ model: 'bob', from: 'tiny', system: 'You are Bob.' })

    expect([200, 201]).toContain(blob.status)
    expect(statuses(parts)[0]).toBe('parsing GGUF')
    expect(statuses(parts).slice(-2)).toEqual(['writing manifest', 'success'])
    expect(whole).toEqual({ status: 'success' })
    expect((await client.chat({ model: 'a-file', messages: hello, options: greedy })).message.content).toBe(
      greeting,
    )
    await expect(client.create({ model: 'nothing' })).rejects.toMatchObject({ status_code: 400 })
  },

  show: async ({ client }) => {
    const parameters = { stop: ['a', 'b'], temperature: 0 }
    await client.create({ model: 'shown', from: 'tiny', system: 'You are Bob.', parameters })

    const shown = await client.show({ model: 'shown' })

    expect(shown.modelfile).toMatch(/^# Modelfile generated by "ollama show"\n/)
    expect(shown).toMatchObject({
      system: 'You are Bob.',
      parameters: expect.stringMatching(/^stop +"a"$/m),
      capabilities: expect.arrayContaining(['completion', 'tools']),
      details: { format: 'gguf', family: 'llama' },
      model_info: { 'general.architecture': 'llama' },
    })
    await expect(client.show({ model: 'nope' })).rejects.toMatchObject({
      status_code: 404,
      error: "model 'nope:latest' not found",
    })
  },

  copy: async ({ client }) => {
    expect(await client.copy({ source: 'tiny', destination: 'copied' })).toEqual({ status: 'success' })
    expect((await client.generate({ model: 'copied', prompt: 'Hello', options: greedy })).response).toBe(
      greeting,
    )
    await expect(client.copy({ source: 'nope', destination: 'copied' })).rejects.toMatchObject({
      status_code: 404,
    })
  },

  delete: async ({ client }) => {
    await client.copy({ source: 'tiny', destination: 'gone' })

    expect(await client.delete({ model: 'gone' })).toEqual({ status: 'success' })
    await expect(client.show({ model: 'gone' })).rejects.toMatchObject({ status_code: 404 })
    await expect(client.delete({ model: 'gone' })).rejects.toMatchObject({ status_code: 404 })
  },

  list: async ({ client }) => {
    await client.copy({ source: 'tiny', destination: 'listed' })

    const { models } = await client.list()

    expect(models.map(({ name }) => name)).toEqual(expect.arrayContaining(['listed:latest', 'tiny:latest']))
    expect(models.find(({ name }) => name === 'listed:latest')).toMatchObject({
      digest: expect.stringMatching(/^[0-9a-f]{64}$/),
      size: expect.toSatisfy((bytes: number) => bytes > 1_000_000),
      details: { quantization_level: 'Q8_0' },
    })
  },

  ps: async ({ client }) => {
    await client.generate({ model: 'tiny', prompt: '', keep_alive: '10m' })

    const { models } = await client.ps()

    expect(models.find(({ name }) => name === 'tiny:latest')).toMatchObject({
      size: expect.toSatisfy((bytes: number) => bytes > 1_000_000),
      expires_at: expect.toSatisfy((date: string) => Date.parse(date) > Date.now()),
    })
  },

  version: async ({ client }) => {
    expect((await client.version()).version).toMatch(/^\d+\.\d+\.\d+$/)
  },

  push: async ({ client, registry }) => {
    const model = `${registry}/library/pushed:latest`
    await client.create({ model, from: 'tiny', system: 'You are pushed.' })

    const whole = await client.push({ model, insecure: true })
    const parts = await collect(client.push({ model, insecure: true, stream: true }))

    expect(whole).toEqual({ status: 'success' })
    expect(statuses(parts)).toEqual([
      'retrieving manifest',
      ...layers('pushing', parts),
      'pushing manifest',
      'success',
    ])
    expect(parts.filter(({ digest }) => digest).every(isWhole)).toBe(true)
  },

  pull: async ({ client, registry }) => {
    const model = `${registry}/library/pulled:latest`
    await client.create({ model, from: 'tiny', system: 'You are pulled.' })
    await client.push({ model, insecure: true })
    await client.delete({ model })

    const whole = await client.pull({ model, insecure: true })
    const parts = await collect(client.pull({ model, insecure: true, stream: true }))

    expect(whole).toEqual({ status: 'success' })
    expect((await client.show({ model })).system).toBe('You are pulled.')
    const ending = ['verifying sha256 digest', 'writing manifest', 'success']
    expect(statuses(parts)).toEqual(['pulling manifest', ...layers('pulling', parts), ...ending])
    expect(parts.filter(({ digest }) => digest).every(isWhole)).toBe(true)
  },

  // Neither this server nor this Ollama version has that route.
  systemone: async ({ client }) => {
    const questions = { sky: { type: 'noul', instructions: 'Is the sky blue?' } as const }

    await expect(client.systemone({ model: 'tiny', state: 'It is day.', questions })).rejects.toMatchObject({
      status_code: 404,
    })
  },

  // The client always calls ollama.com for these two methods.
  webSearch: () => elsewhere((client) => client.webSearch({ query: 'tea' })),
  webFetch: () => elsewhere((client) => client.webFetch({ url: 'https://example.com' })),
}

/** Methods that TypeScript marks as private. */
const hidden = ['constructor', 'processStreamableRequest', 'fileExists']

test("every public method of Ollama's client has a check", () => {
  const inherited = Object.getPrototypeOf(Ollama.prototype) as object
  const all = [Ollama.prototype, inherited].flatMap((one) => Object.getOwnPropertyNames(one))

  expect([...new Set(all)].filter((name) => !hidden.includes(name)).sort()).toEqual(
    Object.keys(methods).sort(),
  )
})

describe.each(['Express 5', 'fetch'] as const)("methods of Ollama's client, mounted in %s", (mount) => {
  const models = emptyFolder()
  symlinkSync(encoderModel, join(models, 'bert.gguf'))
  let llm: Llm
  let server: Listening
  let registry: { readonly host: string; close(): Promise<void> }

  beforeAll(async () => {
    registry = await (hasDockerRegistry ? startDockerRegistry() : SmallRegistry.start())
    const store = { registries: [], privateRegistries: [registry.host] }
    llm = await createLlm({ models, auth: 'host', store, local: { contextSize: 4096 } })
    server = await listen(mounts[mount].handler(llm))
    await llm.load('tiny')
  }, 60_000)

  afterAll(async () => {
    await server?.close()
    await llm?.close()
    await registry?.close()
  })

  test.for(Object.keys(methods))('%s', async (method) => {
    const client = new Ollama({ host: server.url, headers })
    await methods[method]?.({ client, url: server.url, registry: registry.host })
  })
})

async function collect<Item extends object>(parts: Promise<AbortableAsyncIterator<Item>>): Promise<Item[]> {
  const items: Item[] = []
  for await (const item of await parts) items.push(item)
  return items
}

const statuses = (parts: readonly ProgressResponse[]): readonly string[] => parts.map(({ status }) => status)

/** Whether a progress line reports a complete layer. A layer that already exists has only this line. */
const isWhole = ({ total, completed }: ProgressResponse): boolean => total > 0 && completed === total

function layers(verb: string, parts: readonly ProgressResponse[]): readonly string[] {
  const digests = parts.flatMap(({ digest }) => digest ?? [])
  expect(digests.length).toBeGreaterThan(2)
  return digests.map((digest) => `${verb} ${digest.slice('sha256:'.length, 'sha256:'.length + 12)}`)
}

async function elsewhere(call: (client: Ollama) => Promise<unknown>): Promise<void> {
  const hosts: string[] = []
  const recording = async (url: string | URL | Request): Promise<Response> => {
    hosts.push(new URL(String(url)).host)
    return Response.json({})
  }

  await call(new Ollama({ fetch: recording as typeof fetch }))

  expect(hosts).toEqual(['ollama.com'])
}
