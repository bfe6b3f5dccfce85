/** An app in front of llama.cpp's server with a projector, which turns images into tokens. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Anthropic from '@anthropic-ai/sdk'
import { createLlm, type Llm, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { upstreamEngine } from '@modelmount/core/upstream'
import { Ollama } from 'ollama'
import OpenAI from 'openai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { images, pngUrl } from '../support/images.ts'
import { type Listening, listen } from '../support/listen.ts'
import { type LlamaServerProcess, startLlamaServer } from '../support/llama-server-process.ts'
import { createVisionProjector, imageTokens } from '../support/vision-projector.ts'

const model = 'small'
const text = 'What is this?'
let server: LlamaServerProcess
let llm: Llm
let front: Listening

beforeAll(async () => {
  const projector = join(emptyFolder(), 'mmproj.gguf')
  writeFileSync(projector, createVisionProjector())
  // llama.cpp 0.5.0 answers 500 ("Chunk not found") if its cached prompt has an image twice, and the next prompt has it once.
  const options = ['--mmproj', projector, '--no-cache-prompt', '--ctx-size', '2048', '--alias', model]
  server = await startLlamaServer(...options)
  llm = await createLlm({ models: emptyFolder(), engine: upstreamEngine({ url: server.url }) })
  front = await listen(toNodeHandler(routesFor(), llm))
}, 900_000)
afterAll(async () => {
  await front?.close()
  await llm?.close()
  server?.stop()
})

test('the model of the server has the capability vision', async () => {
  expect((await llm.models.get(model)).details?.capabilities).toContain('vision')
})

test("an image of OpenAI's client becomes tokens of the prompt", async () => {
  const client = new OpenAI({ baseURL: `${front.url}/v1`, apiKey: 'none', maxRetries: 0 })
  const ask = async (...more: OpenAI.ChatCompletionContentPart[]) => {
    const content = [{ type: 'text' as const, text }, ...more]
    const { usage } = await client.chat.completions.create({
      ...{ model, max_tokens: 4, messages: [{ role: 'user', content }] },
    })
    return usage?.prompt_tokens ?? expect.fail()
  }
  const image = { type: 'image_url', image_url: { url: pngUrl } } as const
  const plain = await ask()

  expect(await ask(image)).toBe(plain + imageTokens)
  expect(await ask(image, image)).toBe(plain + 2 * imageTokens)
})

test("an image of Anthropic's client becomes tokens of the prompt", async () => {
  const client = new Anthropic({ baseURL: front.url, apiKey: 'none', maxRetries: 0 })
  const ask = async (...more: Anthropic.ContentBlockParam[]) => {
    const content = [{ type: 'text' as const, text }, ...more]
    const { usage } = await client.messages.create({
      ...{ model, max_tokens: 4, messages: [{ role: 'user', content }] },
    })
    return usage.input_tokens
  }
  const source = { type: 'base64', media_type: 'image/png', data: images.png } as const

  expect(await ask({ type: 'image', source })).toBe((await ask()) + imageTokens)
})

test("an image of Ollama's client becomes tokens of the prompt", async () => {
  const client = new Ollama({ host: front.url })
  const ask = async (more: object = {}) => {
    const answer = await client.chat({
      ...{ model, options: { num_predict: 4 }, messages: [{ role: 'user', content: text, ...more }] },
    })
    return answer.prompt_eval_count
  }

  expect(await ask({ images: [images.png] })).toBe((await ask()) + imageTokens)
})

test('an image that only looks like one is a 400 of the server', async () => {
  const client = new OpenAI({ baseURL: `${front.url}/v1`, apiKey: 'none', maxRetries: 0 })
  const url = `data:image/png;base64,${images.png.slice(0, 40)}`
  const content = [{ type: 'image_url' as const, image_url: { url } }]

  await expect(
    client.chat.completions.create({ model, max_tokens: 4, messages: [{ role: 'user', content }] }),
  ).rejects.toMatchObject({ status: 400 })
})
