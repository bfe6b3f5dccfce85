import { type ChatResponse, Ollama } from 'ollama'
import { expect } from 'vitest'
import type { Client, Sdk } from '../situations.ts'

/** Ollama's SDK has no key option, ignores `OLLAMA_HOST`, and sends `OLLAMA_API_KEY` only to ollama.com. */
export const ollama: Sdk = {
  connect: (host, key) => clientOf(new Ollama({ host, headers: { authorization: `Bearer ${key}` } })),
  badFields: { keep_alive: 'soon' },
  neverCut: { truncate: false },
  abortError: 'AbortError',
  errors: {
    'unknown model': ['ResponseError', { status_code: 404, error: "model 'nope' not found" }],
    'bad body': ['ResponseError', { status_code: 400 }],
    'too long prompt': ['ResponseError', { status_code: 400, error: expect.stringContaining('context') }],
    // Ollama's SDK throws a plain `Error` for an error in a stream.
    'engine killed': ['Error', { message: expect.stringContaining('model process') }],
    'wrong key': ['ResponseError', { status_code: 401 }],
  },
}

function clientOf(client: Ollama): Client {
  const question = { model: 'tiny', options: { temperature: 0 } }
  return {
    ask: async (messages, fields = {}) => {
      const { message } = await client.chat({ ...question, messages: [...messages], ...fields })
      return message.content
    },
    stream: async (messages) => {
      const parts = await client.chat({ ...question, messages: [...messages], stream: true })
      return { pieces: texts(parts), abort: () => parts.abort() }
    },
  }
}

async function* texts(parts: AsyncIterable<ChatResponse>): AsyncGenerator<string> {
  for await (const { message } of parts) if (message.content !== '') yield message.content
}
