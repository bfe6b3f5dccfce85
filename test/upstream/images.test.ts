/** Images of all APIs reach a model of an upstream server that sees, over each of its APIs. */
import Anthropic from '@anthropic-ai/sdk'
import { createLlm, type Llm, routesFor } from '@modelmount/core'
import type { ImagePart } from '@modelmount/core/engine'
import { toNodeHandler } from '@modelmount/core/http'
import { type ScriptedEngine, scriptedEngine } from '@modelmount/core/testing'
import { type ApiName, upstreamEngine } from '@modelmount/core/upstream'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import { Ollama } from 'ollama'
import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { imagesOf } from '../../packages/core/src/engine/request-input.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { images, pngUrl } from '../support/images.ts'
import { type Listening, listen } from '../support/listen.ts'
import { post } from '../support/served.ts'

interface Sites {
  readonly url: string
  /** The engine of the app behind. */
  readonly engine: ScriptedEngine
  close(): Promise<void>
}

/** An Express app in front of an app with a scripted model that sees. */
async function start(api: ApiName): Promise<Sites> {
  const engine = scriptedEngine('A red cat.', { models: ['eye', 'blind'], seesImages: true })
  const apps: (Llm | Listening)[] = []
  const replica = await createLlm({ models: emptyFolder(), engine })
  const behind = await listen(toNodeHandler(routesFor(), replica))
  const llm = await createLlm({
    models: emptyFolder(),
    engines: {
      far: upstreamEngine({
        ...{ url: behind.url, api },
        models: { eye: {}, blind: { capabilities: ['completion', 'tools'] } },
      }),
    },
    responses: { store: 'memory' },
  })
  const app = express()
  app.use(llmRouter(llm))
  const front = await listen(app)
  apps.push(front, llm, behind, replica)
  return {
    ...{ url: front.url, engine },
    close: async () => {
      for (const one of apps) await one.close()
    },
  }
}

const image = { type: 'base64', media_type: 'image/png', data: images.png } as const

describe.each<ApiName>(['openai', 'anthropic', 'ollama'])('over the API %s', (api) => {
  let sites: Sites
  let seen: number
  beforeAll(async () => {
    sites = await start(api)
  })
  afterAll(() => sites.close())
  beforeEach(() => {
    seen = sites.engine.requests.length
  })

  /** Images and texts that the model behind has got since the test began. */
  const lastInput = () => {
    expect(sites.engine.requests).toHaveLength(seen + 1)
    const { input } = sites.engine.requests.at(-1) ?? expect.fail()
    return { images: imagesOf(input), text: JSON.stringify(input, withoutData) }
  }
  const withoutData = (key: string, value: unknown): unknown => (key === 'data' ? undefined : value)
  const dataOf = (parts: readonly ImagePart[]) => parts.map(({ mediaType, data }) => [mediaType, data])
  const png = ['image/png', images.png]

  test("OpenAI's client sends images in a chat", async () => {
    const client = new OpenAI({ baseURL: `${sites.url}/v1`, apiKey: 'none', maxRetries: 0 })
    const { choices } = await client.chat.completions.create({
      model: 'far/eye',
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is this?' },
            { type: 'image_url', image_url: { url: pngUrl, detail: 'low' } },
            { type: 'image_url', image_url: { url: `data:image/webp;base64,${images.webp}` } },
          ],
        },
      ],
    })

    expect(choices[0]?.message.content).toBe('A red cat.')
    const { images: got, text } = lastInput()
    expect(dataOf(got)).toEqual([png, ['image/webp', images.webp]])
    expect(text).toContain('What is this?')
  })

  test("OpenAI's client sends images in a response, which a later response continues", async () => {
    const client = new OpenAI({ baseURL: `${sites.url}/v1`, apiKey: 'none', maxRetries: 0 })
    const first = await client.responses.create({
      model: 'far/eye',
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'Look.' },
            { type: 'input_image', image_url: pngUrl, detail: 'auto' },
          ],
        },
      ],
    })
    expect(first.output_text).toBe('A red cat.')
    expect(dataOf(lastInput().images)).toEqual([png])

    seen++
    await client.responses.create({ model: 'far/eye', previous_response_id: first.id, input: 'And now?' })
    const { images: got, text } = lastInput()
    expect(dataOf(got)).toEqual([png])
    expect(text).toContain('And now?')
  })

  test("Anthropic's client sends images in messages and in results of tools, and counts them", async () => {
    const client = new Anthropic({ baseURL: sites.url, apiKey: 'none', maxRetries: 0 })
    const messages: Anthropic.MessageParam[] = [
      {
        role: 'user',
        content: [
          { type: 'image', source: image },
          { type: 'text', text: 'Find more.' },
        ],
      },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }] },
      {
        role: 'user',
        content: [
          {
            ...{ type: 'tool_result', tool_use_id: 'toolu_1' },
            content: [
              { type: 'text', text: 'Seen:' },
              { type: 'image', source: { ...image, media_type: 'image/gif', data: images.gif } },
            ],
          },
        ],
      },
    ]
    const tools = [{ name: 'look', input_schema: { type: 'object' as const } }]
    const body = { model: 'far/eye', messages, tools }
    const message = await client.messages.create({ ...body, max_tokens: 50 })

    expect(message.content).toMatchObject([{ type: 'text', text: 'A red cat.' }])
    expect(dataOf(lastInput().images)).toEqual([png, ['image/gif', images.gif]])
    expect((await client.messages.countTokens(body)).input_tokens).toBeGreaterThan(0)
  })

  test("Ollama's client sends images in a chat and with a prompt", async () => {
    const client = new Ollama({ host: sites.url })
    const { message } = await client.chat({
      model: 'far/eye',
      messages: [{ role: 'user', content: 'What?', images: [images.jpeg] }],
    })
    expect(message.content).toBe('A red cat.')
    expect(dataOf(lastInput().images)).toEqual([['image/jpeg', images.jpeg]])

    seen++
    const { response } = await client.generate({
      ...{ model: 'far/eye', prompt: 'What?', images: [Buffer.from(images.png, 'base64')] },
    })
    expect(response).toBe('A red cat.')
    expect(dataOf(lastInput().images)).toEqual([png])
  })

  test('a model without vision gets a 400 that names the image, and nothing is sent', async () => {
    const asked = [
      [
        '/v1/chat/completions',
        { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: pngUrl } }] }] },
        { error: { param: 'messages[0].content[0]', code: 'unsupported_parameter' } },
      ],
      [
        '/v1/messages',
        { max_tokens: 9, messages: [{ role: 'user', content: [{ type: 'image', source: image }] }] },
        { error: { message: 'messages.0.content.0: An image is not supported by this model.' } },
      ],
      [
        '/api/chat',
        { messages: [{ role: 'user', content: 'What?', images: [images.png] }] },
        { error: 'invalid messages[0].images: An image is not supported by this model.' },
      ],
    ] as const
    for (const [path, body, error] of asked) {
      const response = await post(sites.url + path, { model: 'far/blind', ...body })
      expect([path, response.status]).toEqual([path, 400])
      expect(await response.json()).toMatchObject(error)
    }
    expect(sites.engine.requests).toHaveLength(seen)
  })

  test('an invalid image is a 400 that names it, and nothing is sent', async () => {
    const text = Buffer.from('Only a text file, named as an image.').toString('base64')
    const url = (data: string) => ({ image_url: { url: `data:image/png;base64,${data}` } })
    const asked = [
      [
        '/v1/chat/completions',
        { messages: [{ role: 'user', content: [{ type: 'image_url', ...url(text) }] }] },
        { error: { param: 'messages[0].content[0]', message: expect.stringContaining('formats') } },
      ],
      [
        '/v1/responses',
        { input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'file_1' }] }] },
        { error: { param: 'input[0].content[0]', message: expect.stringContaining('data: URL') } },
      ],
      [
        '/v1/responses',
        { input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'https://a.example/b' }] }] },
        { error: { param: 'input[0].content[0]', message: expect.stringContaining('data: URL') } },
      ],
      [
        '/v1/messages',
        {
          max_tokens: 9,
          messages: [
            {
              role: 'user',
              content: [{ type: 'image', source: { ...image, media_type: 'image/jpeg' } }],
            },
          ],
        },
        {
          error: {
            message:
              'messages.0.content.0: Invalid image: the media type does not match the image, which is image/png.',
          },
        },
      ],
      [
        '/api/chat',
        { messages: [{ role: 'user', content: 'What?', images: ['!!!!'] }] },
        { error: expect.stringMatching(/^invalid messages\[0\]\.images: Invalid image: .* in Base64\.$/) },
      ],
      [
        '/api/generate',
        { prompt: 'What?', images: [''] },
        { error: expect.stringMatching(/^invalid images: Invalid image: .* got none\.$/) },
      ],
    ] as const
    for (const [path, body, error] of asked) {
      const response = await post(sites.url + path, { model: 'far/eye', ...body })
      expect([path, response.status]).toEqual([path, 400])
      const answer = await response.json()
      expect(answer).toMatchObject(error)
      expect(JSON.stringify(answer)).not.toContain(text)
    }
    expect(sites.engine.requests).toHaveLength(seen)
  })
})
