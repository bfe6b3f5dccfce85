/** Official clients retry a rate-limited call once, and wait as long as the response headers tell them. */
import Anthropic from '@anthropic-ai/sdk'
import Anthropic0 from 'anthropic-sdk-0'
import OpenAI from 'openai'
import { expect, type TestContext, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { greeting, type LimitedServer, poor, serveLimited } from './limited.ts'

interface Sdk {
  /** Calls with the client's built-in retries. */
  ask(url: string, name: string): Promise<string | null | undefined>
  stream(url: string, name: string): Promise<string>
  /** Class name of the error for a key at its spending limit. */
  readonly spent: string
}

const messages = [{ role: 'user' as const, content: 'Hello' }]

const anthropic = (Client: typeof Anthropic): Sdk => {
  const question = { model: 'tiny', max_tokens: 10, messages }
  const connect = (baseURL: string, apiKey: string) => new Client({ baseURL, apiKey })
  return {
    ask: async (url, name) => {
      const { content } = await connect(url, name).messages.create(question)
      return content.map((block) => (block.type === 'text' ? block.text : '')).join('')
    },
    stream: (url, name) => connect(url, name).messages.stream(question).finalText(),
    spent: 'BadRequestError',
  }
}

const openai: Sdk = {
  ask: async (url, name) => {
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: name })
    const { choices } = await client.chat.completions.create({ model: 'tiny', messages })
    return choices[0]?.message.content
  },
  stream: async (url, name) => {
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: name })
    return (await client.chat.completions.stream({ model: 'tiny', messages }).finalContent()) ?? ''
  },
  spent: 'RateLimitError',
}

const sdks: readonly (readonly [string, Sdk])[] = [
  ['openai', openai],
  ['@anthropic-ai/sdk', anthropic(Anthropic)],
  ['anthropic-sdk-0', anthropic(Anthropic0 as unknown as typeof Anthropic)],
]

const models = emptyFolder()

/** Each test has its own server, since the tests wait at the same time. */
async function serve({ onTestFinished }: TestContext): Promise<LimitedServer> {
  const server = await serveLimited(models, 3_000)
  onTestFinished(() => server.close())
  return server
}

test.concurrent.for(sdks)(
  '%s: a rate-limited call is answered after one retry, with and without streaming',
  async ([_name, sdk], context) => {
    const server = await serve(context)
    for (const [name, ask] of [
      ['ada', sdk.ask],
      ['bob', sdk.stream],
    ] as const) {
      await server.useUp(name)

      expect(await ask(server.url, name)).toBe(greeting)
      server.expectOneWait()
    }
  },
)

test.concurrent.for(sdks)(
  '%s: a call at the spending limit is not retried',
  async ([_name, sdk], context) => {
    const server = await serve(context)
    const error = await sdk.ask(server.url, poor).then(
      () => undefined,
      (reason: Error) => reason,
    )

    expect(error?.constructor.name).toBe(sdk.spent)
    expect(server.arrivals).toHaveLength(1)
  },
)
