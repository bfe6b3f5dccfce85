/** Prompts from chats, raw text and token ids, with reasoning, and prompts longer than the context. */
import { createLlm, type GenerateResult, type Llm } from '@modelmount/core'
import type { GenerateEvent, GenerateRequest, Message } from '@modelmount/core/engine'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'

let llm: Llm

beforeAll(async () => {
  llm = await createLlm({ models: emptyFolder(), local: { contextSize: 256 } })
})

afterAll(() => llm.close())

const call = { signal: new AbortController().signal }
const text = (...prompt: (string | readonly number[])[]) => ({ kind: 'text', prompt }) as const
const message = (role: Message['role'], content: string): Message => ({
  role,
  content: [{ type: 'text', text: content }],
})
const chat = (...messages: Message[]) => ({ kind: 'chat', messages }) as const

type End = Extract<GenerateEvent, { type: 'end' }>
async function ask(
  request: Omit<GenerateRequest, 'model'>,
): Promise<Pick<GenerateResult, 'text'> & { readonly reasoning: string; readonly end: End | undefined }> {
  const output = { text: '', reasoning: '' }
  let end: End | undefined
  for await (const event of await llm.generate(
    { model: 'tiny', sampling: { temperature: 0 }, ...request },
    call,
  )) {
    if (event.type === 'text' || event.type === 'reasoning') output[event.type] += event.text
    if (event.type === 'end') end = event
  }
  return { ...output, end }
}
const render = (request: Omit<GenerateRequest, 'model'>): Promise<string> =>
  llm.render({ model: 'tiny', ...request }, call)

const opened = '<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n'

test('a text prompt becomes a user message', async () => {
  expect(await render({ input: text('Hello') })).toContain(opened)
  expect((await ask({ input: text('Hello') })).text).toBe('Hello! How can I help you?')
})

test('a prompt can end with its last message, or with the start of a new answer after it', async () => {
  const begun = chat(message('user', 'Hello'), message('assistant', 'Hello! How'))

  expect(await render({ input: begun })).toMatch(/assistant\nHello! How$/)
  expect(await render({ input: { ...begun, promptEnd: 'continue' } })).toMatch(/assistant\nHello! How$/)
  expect(await render({ input: { ...begun, promptEnd: 'none' } })).toMatch(
    /assistant\nHello! How<\|im_end\|>\n$/,
  )
  expect(await render({ input: { ...begun, promptEnd: 'generation-prompt' } })).toMatch(
    /Hello! How<\|im_end\|>\n<\|im_start\|>assistant\n$/,
  )
  const continued = await ask({ input: { ...begun, promptEnd: 'continue' } })
  expect(continued.text).toBe(' can I help you?')
  await expect(
    ask({ input: { ...chat(message('user', 'Hello')), promptEnd: 'continue' } }),
  ).rejects.toMatchObject({
    code: 'invalid_request',
    details: { param: 'promptEnd' },
  })
})

test('the system text of a text prompt becomes a system message before it', async () => {
  const prompt = await render({ input: { ...text('Who are you?'), system: 'You are Zed.' } })

  expect(prompt).toMatch(/^<\|im_start\|>system\nYou are Zed\..*Who are you\?/s)
})

test('without the template, the model continues the raw text', async () => {
  const { text: output, end } = await ask({ input: { ...text(opened), template: false } })

  expect(output).toBe('Hello! How can I help you?')
  expect(end?.usage.inputTokens).toBe(10)
  expect(await render({ input: { ...text('a', ' b'), template: false } })).toBe('a b')
})

test('returnTokens returns prompt and answer as token ids, which a later prompt can begin with', async () => {
  const first = await ask({ input: text('My name is Ann.'), returnTokens: true, maxTokens: 20 })
  const tokens = first.end?.tokens ?? []
  const { inputTokens = 0, outputTokens = 0 } = first.end?.usage ?? {}
  // The additional token ends the answer.
  expect(tokens).toHaveLength(inputTokens + outputTokens + 1)

  const input = text(tokens, 'What is my name?')
  const prompt = await render({ input })
  const { end } = await ask({ input, maxTokens: 1 })

  expect(prompt).toContain('My name is Ann.')
  expect(prompt).toContain(`${first.text}<|im_end|><|im_start|>user\nWhat is my name?`)
  expect(prompt.indexOf('What is my name?')).toBeGreaterThan(prompt.indexOf('My name is Ann.'))
  expect(end?.usage.inputTokens).toBeGreaterThan(tokens.length)
})

test('a token id outside the vocabulary is rejected', async () => {
  await expect(ask({ input: text([1, 1_000_000], 'Hello') })).rejects.toMatchObject({
    code: 'invalid_request',
  })
})

const sum = chat(message('user', 'What is 2 plus 3?'))

test('with reasoning: true, the reasoning is separate from the text', async () => {
  const thinking = await ask({ input: sum, reasoning: true, maxTokens: 60 })

  expect(thinking.reasoning).not.toBe('')
  expect(thinking.text).toContain('5')
  expect(thinking.reasoning + thinking.text).not.toMatch(/<\/?think>/)
})

test('with reasoning: false, the answer has no reasoning', async () => {
  const { reasoning, text: output } = await ask({ input: sum, reasoning: false, maxTokens: 60 })

  expect(reasoning).toBe('')
  expect(output).toContain('5')
})

const old = Array.from({ length: 40 }, (_, index) => [
  message('user', `Question number ${index} is here.`),
  message('assistant', 'Yes.'),
]).flat()
const long = chat(message('system', 'You are Zed.'), ...old, message('user', 'Who are you?'))

test('a chat longer than the context is rejected', async () => {
  await expect(ask({ input: long })).rejects.toMatchObject({
    code: 'context_length',
    details: { contextSize: 256, inputTokens: expect.any(Number) },
  })
})

test('with overflow: truncate, the oldest messages are dropped, but not the system message and the question', async () => {
  const { end } = await ask({ input: long, overflow: 'truncate', maxTokens: 10, returnTokens: true })
  const read = await render({ input: { ...text(end?.tokens ?? []), template: false } })

  expect(read).toMatch(/^<\|im_start\|>system\nYou are Zed\..*number 39 is.*Who are you\?/s)
  expect(read).not.toContain('number 0 is')
  // No more messages were dropped than necessary.
  expect(end?.usage.inputTokens).toBeGreaterThan(220)
  expect(end?.usage.inputTokens).toBeLessThan(246)
})

test('with overflow: truncate, a question that fills most of the context is kept without earlier messages', async () => {
  const question = message('user', 'word '.repeat(200))

  const { end } = await ask({ input: chat(...old, question), overflow: 'truncate' })

  expect(end?.usage.inputTokens).toBeGreaterThan(192)
})

test('a single message longer than the context is rejected even with overflow: truncate', async () => {
  const input = chat(message('user', 'word '.repeat(2_000)))

  await expect(ask({ input, overflow: 'truncate' })).rejects.toMatchObject({ code: 'context_length' })
})
