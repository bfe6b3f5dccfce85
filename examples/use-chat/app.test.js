/** Tests the route with the object behind `useChat`: with the built-in model, and with a script instead of a model. */
import { once } from 'node:events'
import { Chat } from '@ai-sdk/react'
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { DefaultChatTransport } from 'ai'
import { rolldown } from 'rolldown'
import request from 'supertest'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createApp } from './app.js'
import config from './rolldown.config.js'

/** The object behind the hook `useChat`, which needs no browser. */
async function openChat(llm) {
  const server = createApp(llm).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const url = `http://127.0.0.1:${server.address().port}`
  return new Chat({ transport: new DefaultChatTransport({ api: `${url}/api/chat` }) })
}

const callWeather = [{ call: 'get_weather', arguments: { city: 'Paris' } }]
const answerWeather = ({ input }) =>
  input.kind === 'chat' && input.messages.at(-1)?.role === 'tool' ? 'It is 18 degrees.' : callWeather

describe.each([
  ['the built-in model', () => undefined],
  ['a script', () => scriptedEngine(answerWeather)],
])('with %s', (_what, createEngine) => {
  let llm

  beforeAll(async () => {
    const engine = createEngine()
    llm = await createLlm(engine && { engine })
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
    const chat = await openChat(await createLlm({ engine }))
    const sent = chat.sendMessage({ text: 'Hi' })
    await expect.poll(() => engine.running).toBe(1)

    await chat.stop()

    await sent
    await expect.poll(() => engine.running).toBe(0)
  })

  test('rejects a body without messages', async () => {
    const app = createApp(await createLlm({ engine: scriptedEngine('Hi.') }))

    const { status, body } = await request(app).post('/api/chat').send({ prompt: 'Hi' })

    expect(status).toBe(400)
    expect(body.error).toContain('messages')
  })
})

test('the page is served, and its script can be bundled', async () => {
  const app = createApp(await createLlm({ engine: scriptedEngine('Hi.') }))
  const { text } = await request(app).get('/').expect(200)
  const { output, ...input } = config
  const bundle = await rolldown({ ...input, cwd: import.meta.dirname })

  const { output: files } = await bundle.generate({ minify: output.minify })

  expect(text).toContain('src="page.js"')
  expect(files.map(({ type }) => type)).toEqual(['chunk'])
})
