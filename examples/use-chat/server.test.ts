import { fileURLToPath } from 'node:url'
import { Chat } from '@ai-sdk/react'
import { createLlm, type Llm } from '@modelmount/core'
import type { Engine, GenerateRequest } from '@modelmount/core/engine'
import { type ScriptedAnswer, scriptedEngine } from '@modelmount/core/testing'
import { DefaultChatTransport, type UIMessage } from 'ai'
import { rolldown } from 'rolldown'
import request from 'supertest'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../test/support/empty-folder.ts'
import { listen } from '../../test/support/listen.ts'
// @ts-expect-error The example is plain JavaScript, without types.
import config from './rolldown.config.js'
// @ts-expect-error The example is plain JavaScript, without types.
import { createApp } from './server.js'

const models = emptyFolder()

/** The object behind the hook `useChat`, which needs no browser. */
async function openChat(llm: Llm): Promise<Chat<UIMessage>> {
  const { url, close } = await listen(createApp(llm))
  onTestFinished(close)
  return new Chat({ transport: new DefaultChatTransport({ api: `${url}/api/chat` }) })
}

const callWeather: ScriptedAnswer = [{ call: 'get_weather', arguments: { city: 'Paris' } }]
const answerWeather = ({ input }: GenerateRequest): ScriptedAnswer =>
  input.kind === 'chat' && input.messages.at(-1)?.role === 'tool' ? 'It is 18 degrees.' : callWeather

describe.each<[what: string, createEngine: () => Engine | undefined]>([
  ['the built-in model', () => undefined],
  ['a script', () => scriptedEngine(answerWeather)],
])('with %s', (_what, createEngine) => {
  let llm: Llm

  beforeAll(async () => {
    const engine = createEngine()
    llm = await createLlm({ models, ...(engine && { engine }) })
  })

  afterAll(() => llm.close())

  test('the chat of the page calls a tool, and shows the answer', async () => {
    const chat = await openChat(llm)

    await chat.sendMessage({ text: 'What is the weather in Paris?' })

    expect(chat.status).toBe('ready')
    expect(chat.messages.map(({ role }) => role)).toEqual(['user', 'assistant'])
    expect(chat.messages[1]?.parts).toContainEqual(
      expect.objectContaining({
        type: 'tool-get_weather',
        state: 'output-available',
        output: { city: 'Paris', temperature: 18 },
      }),
    )
    expect(chat.messages[1]?.parts.at(-1)).toMatchObject({
      type: 'text',
      text: expect.stringContaining('18'),
    })
  })

  test('the next question contains the conversation, tool calls included', async () => {
    const chat = await openChat(llm)
    await chat.sendMessage({ text: 'What is the weather in Paris?' })

    await chat.sendMessage({ text: 'What is the weather in Paris?' })

    expect(chat.status).toBe('ready')
    expect(chat.messages).toHaveLength(4)
  })
})

describe('the route', () => {
  test('ends the answer in the engine when the user stops it', async () => {
    const engine = scriptedEngine('word '.repeat(1_000), { delayMs: 2 })
    const chat = await openChat(await createLlm({ models, engine }))
    const sent = chat.sendMessage({ text: 'Hi' })
    await expect.poll(() => engine.running).toBe(1)

    await chat.stop()

    await sent
    await expect.poll(() => engine.running).toBe(0)
  })

  test('rejects a body without messages', async () => {
    const app = createApp(await createLlm({ models, engine: scriptedEngine('Hi.') }))

    const { status, body } = await request(app).post('/api/chat').send({ prompt: 'Hi' })

    expect(status).toBe(400)
    expect(body.error).toContain('messages')
  })
})

test('the page is served, and its script can be bundled', async () => {
  const app = createApp(await createLlm({ models, engine: scriptedEngine('Hi.') }))
  const { text } = await request(app).get('/').expect(200)
  const { output, ...input } = config
  const bundle = await rolldown({ ...input, cwd: fileURLToPath(new URL('.', import.meta.url)) })

  const { output: files } = await bundle.generate({ minify: output.minify })

  expect(text).toContain('src="page.js"')
  expect(files.map(({ type }) => type)).toEqual(['chunk'])
})
