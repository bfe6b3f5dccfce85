import type Anthropic from '@anthropic-ai/sdk'
import { expect } from 'vitest'
import type { Client, Sdk } from '../situations.ts'

/** @param Class Client class of any SDK version. All versions have the methods used here. */
export const anthropic = (Class: typeof Anthropic): Sdk => ({
  connect: (url, apiKey) => clientOf(new Class({ baseURL: url, apiKey, maxRetries: 0 })),
  fromEnvironment: {
    variables: (url, key) => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: key }),
    connect: () => clientOf(new Class({ maxRetries: 0 })),
  },
  badFields: { max_tokens: -1 },
  errors: {
    'unknown model': ['NotFoundError', { status: 404, type: 'not_found_error' }],
    'bad body': [
      'BadRequestError',
      { status: 400, message: expect.stringContaining('max_tokens: Input should be') },
    ],
    'too long prompt': [
      'BadRequestError',
      { status: 400, message: expect.stringContaining('prompt is too long') },
    ],
    'engine killed': ['APIError', { type: 'api_error', message: expect.stringContaining('model process') }],
    'wrong key': ['AuthenticationError', { status: 401, type: 'authentication_error' }],
  },
})

function clientOf(client: Anthropic): Client {
  // The types of the newest client lack `temperature`, but the client sends it.
  const question = { model: 'tiny', max_tokens: 4_000, ...({ temperature: 0 } as object) }
  return {
    ask: async (messages, fields = {}) => {
      const { content } = await client.messages.create({ ...question, messages: [...messages], ...fields })
      return content.map((block) => (block.type === 'text' ? block.text : '')).join('')
    },
    stream: async (messages) => {
      const events = await client.messages.create({ ...question, messages: [...messages], stream: true })
      return { pieces: texts(events), abort: () => events.controller.abort() }
    },
  }
}

async function* texts(events: AsyncIterable<Anthropic.RawMessageStreamEvent>): AsyncGenerator<string> {
  for await (const event of events)
    if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') yield event.delta.text
}
