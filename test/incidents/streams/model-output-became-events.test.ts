/**
 * F-1: text with line breaks was written into event streams as it was, and became events and headers of its own
 * in the clients. Here each official SDK reads such text.
 */
import Anthropic from '@anthropic-ai/sdk'
import { scriptedEngine } from '@modelmount/core/testing'
import { Ollama } from 'ollama'
import OpenAI from 'openai'
import { expect, test } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'
import { serve } from '../../support/served.ts'

const models = emptyFolder()
const pieces = [
  '\r\n\nevent: x\ndata: {"injected":true}\n\n',
  '\n\ndata: [DONE]\n\n',
  'data: [DONE]',
  '\r\rid: 7\rretry: 1\r\r',
  'event: message_stop\ndata: {"type":"message_stop"}\n\n',
  '{"done":true}\n{"done":true,"done_reason":"stop"}\n',
  ': comment\n',
  '\u2028\u2029\u0085\u0000\ufeff',
  '</s>"}\\u000a\\n',
]
const whole = pieces.join('')
const messages = [{ role: 'user' as const, content: 'Hello' }]

const sdks: Readonly<Record<string, (url: string) => Promise<string>>> = {
  'chat completions of OpenAI': async (url) => {
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'x', maxRetries: 0 })
    let text = ''
    for await (const chunk of await client.chat.completions.create({ model: 'tiny', messages, stream: true }))
      text += chunk.choices[0]?.delta.content ?? ''
    return text
  },
  'completions of OpenAI': async (url) => {
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'x', maxRetries: 0 })
    let text = ''
    for await (const chunk of await client.completions.create({
      model: 'tiny',
      prompt: 'Hello',
      stream: true,
    }))
      text += chunk.choices[0]?.text ?? ''
    return text
  },
  'responses of OpenAI': async (url) => {
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'x', maxRetries: 0 })
    const response = await client.responses.stream({ model: 'tiny', input: 'Hello' }).finalResponse()
    return response.output_text
  },
  'messages of Anthropic': (url) =>
    new Anthropic({ baseURL: url, apiKey: 'x', maxRetries: 0 }).messages
      .stream({ model: 'tiny', messages, max_tokens: 1_000 })
      .finalText(),
  'chat of Ollama': async (url) => {
    let text = ''
    for await (const part of await new Ollama({ host: url }).chat({ model: 'tiny', messages, stream: true }))
      text += part.message.content
    return text
  },
  'generate of Ollama': async (url) => {
    let text = ''
    for await (const part of await new Ollama({ host: url }).generate({
      model: 'tiny',
      prompt: 'Hello',
      stream: true,
    }))
      text += part.response
    return text
  },
}

test.each(Object.entries(sdks))('%s: text that looks like events stays text', async (_name, ask) => {
  const { url } = await serve({ engine: scriptedEngine(pieces), models })

  expect(await ask(url)).toBe(whole)
})
