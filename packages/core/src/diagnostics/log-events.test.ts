import { expect, onTestFinished, test } from 'vitest'
import { createLlm } from '../create-llm.ts'
import { routesFor } from '../dialects/index.ts'
import { LlmError } from '../errors.ts'
import { toFetchHandler } from '../http/fetch.ts'
import type { Logger } from '../logger.ts'
import type { LlmOptions } from '../options.ts'
import { type Script, scriptedEngine } from '../testing/scripted-engine.ts'

type Line = readonly [level: string, message: string, details: Readonly<Record<string, unknown>>]

function recordLines(): { readonly lines: Line[]; readonly logger: Logger } {
  const lines: Line[] = []
  const record = (level: string) => (details: object, message: string) =>
    void lines.push([level, message, { ...details }])
  return { lines, logger: { info: record('info'), warn: record('warn'), error: record('error') } }
}

const caller = { id: 'ann', tenant: 'team', key: { id: 'key_1', name: 'laptop' } }

async function start(script: Script, options: LlmOptions) {
  const llm = await createLlm({ engine: scriptedEngine(script), models: [], auth: 'host', ...options })
  onTestFinished(() => llm.close())
  const handle = toFetchHandler(routesFor(), llm, { authenticate: () => caller })
  const post = async (path: string, body: object, headers: Readonly<Record<string, string>> = {}) => {
    const init = {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json', ...headers },
    }
    const response = await handle(new Request(`http://localhost${path}`, init))
    await response.text()
    return response
  }
  return { llm, post }
}

const body = { model: 'tiny', messages: [{ role: 'user', content: 'Hi' }] }

test('the access log has one line per call, with its ids, times and tokens', async () => {
  const { lines, logger } = recordLines()
  const { llm, post } = await start('one two three', { logger, accessLog: true })

  const response = await post('/v1/chat/completions', body)
  await llm.embed('Hi', { model: 'tiny' })

  expect(lines).toEqual([
    [
      'info',
      'call ended',
      {
        callId: expect.any(String),
        requestId: response.headers.get('x-request-id'),
        ...{ key: 'key_1', tenant: 'team', model: 'tiny:latest', kind: 'generate' },
        ...{ dialect: 'openai', route: '/v1/chat/completions', status: 'ended' },
        ...{ durationMs: expect.any(Number), queueMs: expect.any(Number), firstTokenMs: expect.any(Number) },
        ...{ inputTokens: 1, reusedTokens: 0, outputTokens: 3, finishReasons: ['stop'] },
      },
    ],
    ['info', 'call ended', expect.objectContaining({ kind: 'embed', model: 'tiny:latest', status: 'ended' })],
  ])
})

test('a call that fails has an access line with its code, and an error line with the same ids', async () => {
  const { lines, logger } = recordLines()
  const failure = new LlmError('upstream', 'The model process has ended.')
  const { post } = await start([failure], { logger, accessLog: true })

  const response = await post('/v1/chat/completions', body)

  const ids = { requestId: response.headers.get('x-request-id'), key: 'key_1', model: 'tiny:latest' }
  expect(lines).toEqual([
    ['error', failure.message, expect.objectContaining({ ...ids, err: failure })],
    ['info', 'call failed', expect.objectContaining({ ...ids, status: 'failed', code: 'upstream' })],
  ])
})

test('a failure that is no `LlmError` is logged once, with the ids of its call', async () => {
  const { lines, logger } = recordLines()
  const broken = scriptedEngine('unused')
  const generate = (): never => {
    throw new RangeError('a bug')
  }
  const { post } = await start('unused', { logger, engine: { ...broken, generate } })

  for (const stream of [false, true]) await post('/v1/chat/completions', { ...body, stream })

  expect(lines.map(([level, , { key, model }]) => [level, key, model])).toEqual([
    ['error', 'key_1', 'tiny:latest'],
    ['error', 'key_1', 'tiny:latest'],
  ])
})

test('each line of a call comes from a child of the logger, if it has children', async () => {
  const { lines, logger } = recordLines()
  const children: object[] = []
  const child = (fields: object): Logger => {
    children.push(fields)
    return logger
  }
  const { post } = await start('Hi.', { logger: { ...logger, child }, accessLog: true })

  await post('/v1/chat/completions', body)

  expect(children).toMatchObject([{ key: 'key_1', tenant: 'team', model: 'tiny:latest' }])
  expect(lines).toMatchObject([['info', 'call ended', { status: 'ended' }]])
  expect(lines[0]?.[2]).not.toHaveProperty('key')
})

test.each<[string, Partial<Logger>]>([
  [
    'throws',
    {
      child: () => {
        throw new Error('no')
      },
    },
  ],
  ['returns nothing', { child: () => undefined as never }],
])('a logger whose `child` %s gets the fields with each line', async (_, broken) => {
  const { lines, logger } = recordLines()
  const { post } = await start('Hi.', { logger: { ...logger, ...broken }, accessLog: true })

  await post('/v1/chat/completions', body)

  expect(lines).toMatchObject([['info', 'call ended', { key: 'key_1', status: 'ended' }]])
})

test('without `accessLog` a call that succeeds has no line', async () => {
  const { lines, logger } = recordLines()
  const { post } = await start('Hi.', { logger })

  await post('/v1/chat/completions', body)

  expect(lines).toEqual([])
})

test.each<[LlmOptions, string]>([
  [{ accessLog: true }, '`accessLog` needs a logger'],
  [{ accessLog: 'yes' as never }, 'Expected `accessLog` to be true or false, got yes'],
  [{ accessLog: true, logger: { warn: () => {}, error: () => {} } }, '`logger` to have the method info()'],
])('rejects the options %j', async (options, message) => {
  await expect(createLlm({ models: [], ...options })).rejects.toThrow(message)
})
