import { expect, test } from 'vitest'
import { createLlm } from '../create-llm.ts'
import type { Llm } from '../llm.ts'
import { scriptedEngine } from '../testing/scripted-engine.ts'
import type { CallerLlm } from './app-calls.ts'

const engine = scriptedEngine('Hello.')
const llm = await createLlm({ engine, models: [] })
const ada = llm.as({ id: 'ada', models: ['any'] })

// biome-ignore lint/suspicious/noExplicitAny: the calls are wrong
test.each<[string, (llm: any) => Promise<unknown>, string]>([
  [
    'generate',
    (llm) => llm.generate({ messages: [] }),
    "messages: unknown field of generate(). Did you mean input: { kind: 'chat', messages }?",
  ],
  [
    'generate',
    (llm) => llm.generate({ temperature: 1 }),
    'temperature: unknown field of generate(). Did you mean sampling: { temperature }?',
  ],
  ['generate', (llm) => llm.generate(), 'request: expected an object, got nothing.'],
  [
    'generate',
    (llm) => llm.generate({}),
    "input: expected { kind: 'chat', messages } or { kind: 'text', prompt: ['…'] }, got nothing.",
  ],
  [
    'generate',
    (llm) => llm.generate({ input: { kind: 'chats' } }),
    "input.kind: expected 'chat', 'text' or 'infill', got 'chats'.",
  ],
  [
    'generate',
    (llm) => llm.generate({ input: { kind: 'chat' } }),
    'input.messages: expected a list, got nothing.',
  ],
  [
    'countTokens',
    (llm) => llm.countTokens({ input: { kind: 'text', prompt: 'Hi' } }),
    "input.prompt: expected a list, got 'Hi'.",
  ],
  [
    'generate',
    (llm) => llm.generate({ input: { kind: 'text', prompts: [] } }),
    'input.prompts: unknown field. Did you mean prompt?',
  ],
  [
    'generate',
    (llm) => llm.generate({ input: { kind: 'text', prompt: [] }, sampling: { top_p: 1 } }),
    'sampling.top_p: unknown field. Did you mean topP?',
  ],
  [
    'generate',
    (llm) => llm.generate({ input: { kind: 'text', prompt: [] } }, { abortSignal: 1 }),
    'abortSignal: unknown option of generate(). Did you mean signal?',
  ],
  [
    'embed',
    (llm) => llm.embed('Hi', { dimension: 3 }),
    'dimension: unknown option of embed(). Did you mean dimensions?',
  ],
  ['embed', (llm) => llm.embed({ input: 'Hi' }), 'input: unknown field of embed(). Did you mean inputs?'],
  ['embed', (llm) => llm.embed({ inputs: ['Hi'] }, { model: 'any' }), 'model: unknown option of embed().'],
  ['embed', (llm) => llm.embed(), 'request: expected an object, got nothing.'],
  [
    'rerank',
    (llm) => llm.rerank({ query: 'a', docs: [] }),
    'docs: unknown field of rerank(). Did you mean documents?',
  ],
  ['tokenize', (llm) => llm.tokenize('Hi'), "request: expected an object, got 'Hi'."],
  ['detokenize', (llm) => llm.detokenize({ ids: [1] }), 'ids: unknown field of detokenize().'],
  [
    'countTokens',
    (llm) => llm.countTokens({ input: { kind: 'text', prompt: [] } }, { stream: true }),
    'stream: unknown option of countTokens().',
  ],
  [
    'render',
    (llm) => llm.render({ input: { kind: 'text', prompt: [] }, load: { context: 5 } }),
    'load.context: unknown field.',
  ],
  ['load', (llm) => llm.load(), 'model: expected the name of a model, got nothing.'],
  [
    'load',
    (llm) => llm.load('any', { keep_alive: 5 }),
    'keep_alive: unknown option of load(). Did you mean keepAlive?',
  ],
  ['load', (llm) => llm.load('any', { signal: 5 }), 'signal: expected an AbortSignal, got 5.'],
])('%s() names what it does not know: %s', async (_method, call, message) => {
  await expect(call(llm)).rejects.toMatchObject({ name: 'LlmError', code: 'invalid_request', message })
  await expect(call(ada)).rejects.toMatchObject({ name: 'LlmError', code: 'invalid_request', message })
})

test('a wrong option is a mistake of the app, and a wrong text may be one of its client', async () => {
  const input = { kind: 'text', prompt: ['Hi'] } as const
  const options = [
    llm.generate({ input, maxToken: 1 } as never),
    llm.generate({ input }, { signal: 5 } as never),
    llm.embed('Hi', { dimension: 3 } as never),
    ada.load('any', { keep_alive: 5 } as never),
  ]
  const texts = [
    llm.generate({ input: { kind: 'chat' } } as never),
    ada.render({ input: { kind: 'text', prompt: 'Hi' } } as never),
  ]

  for (const wrong of options)
    await expect(wrong).rejects.toMatchObject({ status: 500, expose: false, details: { setup: true } })
  for (const wrong of texts)
    await expect(wrong).rejects.toMatchObject({ code: 'invalid_request', status: 400, expose: true })
})

test('a text has one vector, a list several, and a request has the same', async () => {
  const one = await llm.embed('Hi', { dimensions: 3 })
  const several = await llm.embed(['Hi', [72, 105]], { dimensions: 3, endUser: 'eve' })
  const request = await llm.embed({ inputs: ['Hi'], dimensions: 3 })

  expect(one.embedding).toHaveLength(3)
  expect(one.embeddings).toEqual([one.embedding])
  expect(several.embeddings).toEqual([one.embedding, one.embedding])
  expect(request.embeddings).toEqual([one.embedding])
})

test('no texts have no vectors', async () => {
  expect((await llm.embed([])).embeddings).toEqual([])
})

test('llm.as() chats for its caller', async () => {
  const limited = llm.as({ id: 'bob', models: ['any'], limits: { requestsPerMinute: 1 } })

  const { text } = await limited.chat('Hi', { model: 'any' })

  expect(text).toBe('Hello.')
  expect(limited.limitStatus()).toMatchObject([{ name: 'requests', limit: 1, remaining: 0 }])
  await expect(limited.chat('Hi', { model: 'any' })).rejects.toMatchObject({ code: 'rate_limit' })
  await expect(limited.chat('Hi', { model: 'other' })).rejects.toMatchObject({ code: 'permission' })
})

test('llm.as() takes no caller', async () => {
  const answers = [
    (ada as Llm & CallerLlm).chat('Hi', { caller: { id: 'eve' } } as object),
    ada.embed('Hi', { caller: { id: 'eve' } } as object),
  ]

  for (const answer of answers)
    await expect(answer).rejects.toMatchObject({ code: 'invalid_request', details: { param: 'caller' } })
})
