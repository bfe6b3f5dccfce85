/** An app whose models run in another app with Modelmount, over Modelmount's own API: nothing is lost on the way. */
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import Anthropic from '@anthropic-ai/sdk'
import { createLlm, type Llm, routesFor } from '@modelmount/core'
import type { GenerateEvent, GenerateRequest } from '@modelmount/core/engine'
import { toNodeHandler } from '@modelmount/core/http'
import { upstreamEngine } from '@modelmount/core/upstream'
import { Ollama } from 'ollama'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { collect } from '../../packages/core/src/engine/events.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'
import { encoderModel } from '../support/models.ts'
import { until } from '../support/processes.ts'
import { startUpstreamApps, type UpstreamApps } from '../support/upstream-apps.ts'

let apps: UpstreamApps

const pirate = {
  ...{ name: 'pirate', from: 'tiny', system: 'You are a pirate.', parameters: { temperature: 0 } },
  messages: [
    { role: 'user', content: 'Hello' },
    { role: 'assistant', content: 'Ahoy' },
  ],
}

beforeAll(async () => {
  const folder = emptyFolder()
  await copyFile(encoderModel, join(folder, 'bert.gguf'))
  apps = await startUpstreamApps('modelmount', folder)
  for await (const _ of apps.replica.models.create(pirate));
})
afterAll(() => apps.close())

const chat = (text: string): GenerateRequest['input'] => ({
  ...{ kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text }] }] },
})
const request: GenerateRequest = {
  ...{ model: 'tiny', input: chat('What is a GGUF file?'), maxTokens: 20, reasoning: 'auto' },
  sampling: { seed: 7, temperature: 0.8 },
}
const call = () => ({ signal: new AbortController().signal })

async function eventsOf(llm: Llm, changes: Partial<GenerateRequest> = {}): Promise<readonly GenerateEvent[]> {
  const events: GenerateEvent[] = []
  for await (const event of await llm.generate({ ...request, ...changes })) events.push(event)
  return events
}

/** Without what depends on the clock, on the cache, and on the app's name for the model. */
const lasting = (events: readonly GenerateEvent[]): readonly object[] =>
  events
    .filter(({ type }) => type !== 'progress')
    .map((event) =>
      JSON.parse(
        JSON.stringify(event, (name, value) =>
          ['timings', 'reusedTokens', 'cacheReadTokens', 'model', 'divergence'].includes(name)
            ? undefined
            : value,
        ),
      ),
    )

test.each<[what: string, changes: Partial<GenerateRequest>]>([
  ['a seed', {}],
  ['log probabilities of the answer', { logprobs: 3 }],
  ['log probabilities of the prompt', { logprobs: 1, promptLogprobs: true, maxTokens: 2 }],
  ['token ids', { returnTokens: true }],
  ['progress and times', { returnProgress: true, returnTimings: true }],
  ['a stop sequence', { stop: [' '] }],
  ['a schema', { format: { type: 'json-schema', schema: { type: 'object', properties: {} } } }],
  ['a text prompt of token ids', { input: { kind: 'text', prompt: [[1, 2, 3]], template: false } }],
  ['no output', { maxTokens: 0 }],
])('the events of an answer with %s are those of the other app', async (_what, changes) => {
  const direct = await eventsOf(apps.replica, changes)
  const events = await eventsOf(apps.llm, changes)

  expect(lasting(events)).toEqual(lasting(direct))
  expect(events.some(({ type }) => type === 'progress')).toBe(changes.returnProgress ?? false)
})

test('prompts, tokens, vectors and scores are those of the other app', async () => {
  const methods: ((llm: Llm) => Promise<unknown>)[] = [
    (llm) => llm.countTokens(request),
    (llm) => llm.render(request),
    (llm) => llm.tokenize({ model: 'tiny', text: 'héllo 👋 '.repeat(2_000) }),
    (llm) => llm.detokenize({ model: 'tiny', tokens: Array.from({ length: 20_000 }, (_, id) => id % 900) }),
    async (llm) =>
      (await llm.embed({ model: 'bert', inputs: Array.from({ length: 130 }, (_, i) => `text ${i}`) }))
        .embeddings,
  ]
  for (const method of methods) expect(await method(apps.llm)).toEqual(await method(apps.replica))

  const { inputTokens } = await apps.llm.embed({ model: 'bert', inputs: ['one', 'two'] })
  expect(inputTokens).toBe((await apps.replica.embed({ model: 'bert', inputs: ['one', 'two'] })).inputTokens)
  expect(await apps.engine.tokenPieces?.({ model: 'tiny', tokens: [5, 6] }, call())).toHaveLength(2)
})

test('defaults of a Modelfile are those of the other app, and apply once', async () => {
  const asked = { ...request, model: 'pirate' }
  const prompt = await apps.llm.render(asked)

  expect(prompt).toBe(await apps.replica.render(asked))
  expect(prompt.split('You are a pirate.')).toHaveLength(2)
  expect(prompt.split('Ahoy')).toHaveLength(2)
  const client = new Ollama({ host: apps.url })
  expect(await client.show({ model: 'pirate' })).toMatchObject({
    ...{ system: 'You are a pirate.', details: { family: 'llama' } },
    parameters: expect.stringContaining('temperature'),
    template: (await apps.replica.models.details(await apps.replica.models.get('tiny'))).chatTemplate,
  })
})

test('defaults of a Modelfile apply once to a model that the app in front has not listed', async () => {
  await apps.llm.models.list()
  for await (const _ of apps.replica.models.create({ name: 'late', from: 'pirate' }));
  const asked = { ...request, model: 'late' }

  const prompt = await apps.llm.render(asked)

  expect(prompt).toBe(await apps.replica.render(asked))
  expect(prompt.split('Ahoy')).toHaveLength(2)
})

test('defaults of a Modelfile apply once through two apps, also by an alias of the last one', async () => {
  const replica = await createLlm({
    ...{ models: emptyFolder(), scopes: ['inference', 'fleet'], aliases: { nick: 'pirate' } },
  })
  for await (const _ of replica.models.create(pirate));
  const behind = await listen(toNodeHandler(routesFor(), replica))
  const middle = await createLlm({
    ...{ models: emptyFolder(), scopes: ['inference', 'fleet'] },
    engine: upstreamEngine({ url: behind.url, api: 'modelmount' }),
  })
  const between = await listen(toNodeHandler(routesFor(), middle))
  const front = await createLlm({
    models: emptyFolder(),
    engine: upstreamEngine({ url: between.url, api: 'modelmount' }),
  })
  onTestFinished(async () => {
    await front.close()
    await between.close()
    await middle.close()
    await behind.close()
    await replica.close()
  })

  const prompts = []
  for (const model of ['pirate', 'nick'])
    for (const llm of [replica, middle, front]) prompts.push(await llm.render({ ...request, model }))

  expect(prompts[0]?.split('Ahoy')).toHaveLength(2)
  expect(new Set(prompts).size).toBe(1)
})

test('a cache breakpoint of the Anthropic SDK is written and read in the other app', async () => {
  const client = new Anthropic({ baseURL: apps.url, apiKey: 'none' })
  const text = `Rules of the house. ${'Be kind to guests and to pets. '.repeat(60)}`
  const ask = () =>
    client.messages.create({
      ...{ model: 'tiny', max_tokens: 4, messages: [{ role: 'user', content: 'Hi' }] },
      system: [{ type: 'text', text, cache_control: { type: 'ephemeral', ttl: '1h' } }],
    })

  const { usage: written } = await ask()
  const { usage: read } = await ask()

  expect(written.cache_creation?.ephemeral_1h_input_tokens).toBeGreaterThan(400)
  expect(read.cache_read_input_tokens).toBe(written.cache_creation?.ephemeral_1h_input_tokens)
})

test('the KV states of a tenant are deleted in the other app', async () => {
  const ann = apps.llm.as({ id: 'ann' })
  const part = { type: 'text', text: 'Hello there. '.repeat(100), cache: '5m' } as const
  const cached: GenerateRequest = {
    ...request,
    input: { kind: 'chat', messages: [{ role: 'user', content: [part] }] },
  }
  await collect(await ann.generate(cached))
  const inCache = () => apps.engine.countCachedTokens?.(cached, { ...call(), tenant: 'ann' })
  expect(await inCache()).toBeGreaterThan(100)

  await apps.llm.tenants.delete('ann')

  expect(await inCache()).toBe(0)
})

test('a model is loaded with progress, kept and unloaded in the other app', async () => {
  await apps.llm.unload('tiny')
  expect(apps.replica.loaded().map(({ name }) => name)).not.toContain('tiny:latest')
  const fractions: number[] = []

  await apps.llm.load('tiny', {
    keepAlive: 'forever',
    onProgress: ({ fraction }) => fractions.push(fraction),
  })

  const [loaded] = apps.replica.loaded().filter(({ name }) => name === 'tiny:latest')
  expect(loaded?.expiresAt).toBe('never')
  expect(fractions.at(-1)).toBe(1)
  await apps.llm.unload('tiny')
  expect(apps.replica.loaded().map(({ name }) => name)).not.toContain('tiny:latest')
})

test.each<[what: string, changes: Partial<GenerateRequest>]>([
  ['a prompt that is too long', { input: chat('word '.repeat(5_000)) }],
  ['an unknown model', { model: 'nobody' }],
  ['a grammar that is none', { format: { type: 'grammar', source: 'root ::= "' } }],
  ['a value out of range', { sampling: { topP: 7 } }],
  ['a pooling model', { model: 'bert' }],
])('%s is the error of the other app', async (_what, changes) => {
  const errorOf = (llm: Llm) =>
    eventsOf(llm, changes).then(
      () => undefined,
      ({ code, message, details }) => ({ code, message, details }),
    )

  const error = await errorOf(apps.llm)

  expect(error).toEqual(await errorOf(apps.replica))
  expect(error).toBeDefined()
})

test('a client that leaves ends the answer in the other app', async () => {
  const leaving = new AbortController()
  const isIdle = () => apps.replica.loaded().every(({ activity }) => (activity?.activeSequences ?? 0) === 0)

  const answer = await apps.llm.generate(
    { ...request, maxTokens: 900, sampling: { ignoreEos: true } },
    { signal: leaving.signal },
  )
  for await (const event of answer) if (event.type === 'text') leaving.abort()

  await until(isIdle, 10_000)
})

test('a model process that is killed is a typed error, which says so', async () => {
  const answer = await apps.llm.generate({ ...request, maxTokens: 900, sampling: { ignoreEos: true } })
  const kill = () => {
    const [{ processId } = {}] = apps.replica.loaded().filter(({ name }) => name === 'tiny:latest')
    process.kill(processId as number, 'SIGKILL')
  }

  const read = async () => {
    let isKilled = false
    for await (const event of answer) {
      if (event.type === 'text' && !isKilled) kill()
      isKilled = event.type === 'text' || isKilled
    }
  }

  await expect(read()).rejects.toMatchObject({ code: 'upstream', details: { processEnded: true } })
})
