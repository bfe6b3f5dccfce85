import OpenAI from 'openai'
import { expect } from 'vitest'
import type { Client, Sdk } from '../situations.ts'

export const openai: Sdk = {
  connect: (url, apiKey) => clientOf(new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 })),
  fromEnvironment: {
    variables: (url, key) => ({ OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: key }),
    connect: () => clientOf(new OpenAI({ maxRetries: 0 })),
  },
  badFields: { temperature: 3 },
  errors: {
    'unknown model': ['NotFoundError', { status: 404, code: 'model_not_found' }],
    'bad body': ['BadRequestError', { status: 400, param: 'temperature' }],
    'too long prompt': ['BadRequestError', { status: 400, code: 'context_length_exceeded' }],
    'engine killed': [
      'APIError',
      { type: 'server_error', message: expect.stringContaining('model process') },
    ],
    'wrong key': ['AuthenticationError', { status: 401, code: 'invalid_api_key' }],
  },
}

function clientOf(client: OpenAI): Client {
  const question = { model: 'tiny', temperature: 0 }
  return {
    ask: async (messages, fields = {}) => {
      const { choices } = await client.chat.completions.create({
        ...question,
        messages: [...messages],
        ...fields,
      })
      return choices[0]?.message.content ?? ''
    },
    stream: async (messages) => {
      const chunks = await client.chat.completions.create({
        ...question,
        messages: [...messages],
        stream: true,
      })
      return { pieces: texts(chunks), abort: () => chunks.controller.abort() }
    },
  }
}

async function* texts(chunks: AsyncIterable<OpenAI.ChatCompletionChunk>): AsyncGenerator<string> {
  for await (const { choices } of chunks) if (choices[0]?.delta.content) yield choices[0].delta.content
}
