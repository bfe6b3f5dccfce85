/** An app with local models and those of two other servers: another app with Modelmount, and one that is away. */
import { createLlm, type Llm, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { upstreamEngine } from '@modelmount/core/upstream'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'
import { chats, post } from '../support/served.ts'

let replica: Llm
let llm: Llm
let url = ''
const closers: (() => Promise<void>)[] = []

async function serve(app: Llm): Promise<string> {
  const { url, close } = await listen(toNodeHandler(routesFor(), app))
  closers.push(close)
  return url
}

/** A port on which no server listens. */
async function closedUrl(): Promise<string> {
  const { url, close } = await listen((_req, res) => void res.end())
  await close()
  return url
}

beforeAll(async () => {
  replica = await createLlm({ models: emptyFolder() })
  llm = await createLlm({
    models: emptyFolder(),
    database: ':memory:',
    prices: { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 1 } },
    engines: {
      gpu: upstreamEngine({ url: await serve(replica) }),
      away: upstreamEngine({ url: await closedUrl(), models: ['tiny'] }),
    },
    aliases: { best: ['away/tiny', 'gpu/tiny', 'tiny'] },
  })
  url = await serve(llm)
})
afterAll(async () => {
  for (const close of closers) await close()
  await llm.close()
  await replica.close()
})

const greedy = { temperature: 0, maxTokens: 20 } as const

test('each API lists the models of this app and of the other one, and of a server that is away as far as they are known', async () => {
  const { models } = (await (await fetch(`${url}/api/tags`)).json()) as { models: { name: string }[] }
  const { data } = (await (await fetch(`${url}/v1/models`)).json()) as { data: { id: string }[] }
  const names = ['away/tiny', 'gpu/tiny:latest', 'tiny:latest']

  expect(models.map(({ name }) => name).sort()).toEqual(names)
  expect(data.map(({ id }) => id)).toEqual([...names, 'best'])
})

test('each API gets the answer of the other app, with the name that was asked for', async () => {
  const { text } = await replica.chat('Hello', greedy)

  for (const { path, body } of chats) {
    const limits = path.startsWith('/api')
      ? { options: { temperature: 0, num_predict: 20 } }
      : { temperature: 0, max_tokens: 20 }
    const response = await post(url + path, { ...body, ...limits, model: 'gpu/tiny' })
    const answer = await response.text()
    expect(response.status).toBe(200)
    expect(answer).toContain(JSON.stringify(text).slice(1, -1))
    expect(answer).toContain('"model":"gpu/tiny"')
  }
})

test('a call of the other app is in the ledger under its full name, with the tokens that the other app has counted', async () => {
  const { usage } = await replica.chat('Count me', greedy)
  await llm.as({ id: 'ann' }).chat('Count me', { ...greedy, model: 'gpu/tiny' })

  const [row] = await llm.usage.calls()
  expect(row).toMatchObject({ model: 'gpu/tiny:latest', caller: 'ann', status: 'ended' })
  expect(Number(row?.nanoUsd)).toBeGreaterThan(0)
  expect(row?.tokens.output).toBe(usage.outputTokens)
})

test('a model that the other app does not have is not found, and a server that is away is an error of its models', async () => {
  await expect(llm.chat('Hi', { model: 'gpu/none' })).rejects.toMatchObject({
    code: 'not_found',
    message: 'model "gpu/none" not found',
  })
  await expect(llm.chat('Hi', { model: 'away/tiny' })).rejects.toMatchObject({ code: 'upstream' })
  expect(await llm.checkHealth()).toMatchObject({ status: 'ok' })
})

test('the health of a model is that of its server, and not that of the app', async () => {
  const { status, checks } = await llm.checkHealth({ models: ['gpu/tiny', 'away/tiny'] })

  expect(status).toBe('unavailable')
  expect(checks).toMatchObject({
    ...{ app: { status: 'ok' }, engine: { status: 'ok' }, models: { status: 'ok' } },
    'model gpu/tiny': { status: 'ok' },
    'model away/tiny': { status: 'unavailable', reason: 'The upstream server cannot be reached.' },
  })
})

test('the other app answers in place of a server that is away, and the call counts once', async () => {
  const caller = { id: 'bob', limits: { requestsPerMinute: 5 } } as const
  const direct = await replica.chat('Hi', greedy)

  const { text } = await llm.as(caller).chat('Hi', { ...greedy, model: 'best' })

  expect(text).toBe(direct.text)
  const rows = (await llm.usage.calls()).filter(({ caller }) => caller === 'bob')
  expect(rows.map(({ model, status }) => [model, status])).toEqual([['gpu/tiny:latest', 'ended']])
})
