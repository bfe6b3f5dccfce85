/** Official clients retry what may succeed later, wait as the response headers tell them, and throw typed errors. */
import Anthropic from '@anthropic-ai/sdk'
import { LlmError, type LlmErrorCode } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import Anthropic0 from 'anthropic-sdk-0'
import OpenAI from 'openai'
import { describe, expect, type TestContext, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { serve as serveRoutes } from '../support/served.ts'
import { greeting, type LimitedServer, poor, serveLimited } from './limited.ts'

interface Sdk {
  /** Calls with the client's built-in retries, or with another number of them. */
  ask(url: string, name: string, maxRetries?: number): Promise<string | null | undefined>
  stream(url: string, name: string): Promise<string>
  /** Class name of the error for a key at its spending limit. */
  readonly spent: string
}

const messages = [{ role: 'user' as const, content: 'Hello' }]

const anthropic = (Client: typeof Anthropic): Sdk => {
  const question = { model: 'tiny', max_tokens: 10, messages }
  const connect = (baseURL: string, apiKey: string, maxRetries = 2) =>
    new Client({ baseURL, apiKey, maxRetries })
  return {
    ask: async (url, name, maxRetries) => {
      const { content } = await connect(url, name, maxRetries).messages.create(question)
      return content.map((block) => (block.type === 'text' ? block.text : '')).join('')
    },
    stream: (url, name) => connect(url, name).messages.stream(question).finalText(),
    spent: 'BadRequestError',
  }
}

const openai: Sdk = {
  ask: async (url, name, maxRetries = 2) => {
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: name, maxRetries })
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

test.for(sdks)(
  '%s: a call that finds a full queue is answered by its retry, and charged once',
  async ([_name, sdk]) => {
    const full = new LlmError('overloaded', 'Full.', { retryAfterMs: 5 })
    for (const call of [sdk.ask, sdk.stream]) {
      let calls = 0
      const engine = scriptedEngine(() => (calls++ === 0 ? full : greeting))
      const { url, llm } = await serveRoutes({ engine, models, database: ':memory:' })

      expect(await call(url, 'any')).toBe(greeting)

      const charged = (await llm.usage.calls()).filter(({ tokens }) => tokens.output > 0)
      expect([calls, charged.length]).toEqual([2, 1])
    }
  },
)

/** The status of each error, and its class in OpenAI's client and in both versions of Anthropic's. */
const errorClasses: readonly (readonly [code: LlmErrorCode, openai: string, one: string, zero: string])[] = [
  ['invalid_request', 'BadRequestError', 'BadRequestError', 'BadRequestError'],
  ['authentication', 'AuthenticationError', 'AuthenticationError', 'AuthenticationError'],
  ['permission', 'PermissionDeniedError', 'PermissionDeniedError', 'PermissionDeniedError'],
  ['not_found', 'NotFoundError', 'NotFoundError', 'NotFoundError'],
  ['conflict', 'ConflictError', 'ConflictError', 'ConflictError'],
  ['too_large', 'APIError', 'ContentTooLargeError', 'APIError'],
  ['rate_limit', 'RateLimitError', 'RateLimitError', 'RateLimitError'],
  ['upstream', 'InternalServerError', 'InternalServerError', 'InternalServerError'],
  ['overloaded', 'InternalServerError', 'OverloadedError', 'InternalServerError'],
]

describe.each(errorClasses)('an error of the kind %s', (code, ...classes) => {
  test('makes each client throw the class of its status, with our message', async () => {
    const engine = scriptedEngine(new LlmError(code, 'What to do next.'))
    const { url } = await serveRoutes({ engine, models })

    const errors = await Promise.all(
      sdks.map(([_name, sdk]) => sdk.ask(url, 'any', 0).catch((error: Error) => error)),
    )

    expect(errors.map((error) => (error as Error).constructor.name)).toEqual(classes)
    for (const error of errors) expect((error as Error).message).toContain('What to do next.')
  })
})
