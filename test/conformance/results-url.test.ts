/** The absolute URL of a batch's results, below a prefix and behind proxies, on every mount. */

import type { RequestListener } from 'node:http'
import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import Anthropic from '@anthropic-ai/sdk'
import { createLlm, type Llm, routesFor } from '@modelmount/core'
import { toFetchHandler, toNodeHandler } from '@modelmount/core/http'
import { scriptedEngine } from '@modelmount/core/testing'
import { llmRouter as koaRouter } from '@modelmount/koa'
import fastify from 'fastify'
import Koa from 'koa'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { expresses } from '../support/expresses.ts'
import { fastifyHandler } from '../support/fastify.ts'
import { fetchHost } from '../support/fetch.ts'
import { listen } from '../support/listen.ts'
import { nestHandler } from '../support/nest.ts'
import { plainProxy } from '../support/plain-proxy.ts'
import { item, untilEnded } from './batch-calls.ts'

const prefix = '/api/llm'

interface HostOptions {
  /** Whether the app trusts the headers of a proxy on this machine. */
  readonly trusts?: boolean
  readonly publicUrl?: string
}

type Host = (llm: Llm, options: HostOptions) => RequestListener

/** Apps that mount the routes below the prefix, and that can trust a proxy. */
const hosts: Readonly<Record<string, Host>> = {
  ...Object.fromEntries(
    expresses.map(({ version, express, llmRouter }): [string, Host] => [
      `Express ${version}`,
      (llm, { trusts, publicUrl }) => {
        const app = express().use(prefix, llmRouter(llm, { publicUrl }))
        return trusts ? app.set('trust proxy', 'loopback') : app
      },
    ]),
  ),
  Koa: (llm, { trusts = false, publicUrl }) => {
    const router = koaRouter(llm, { publicUrl }).prefix(prefix)
    return Object.assign(new Koa({ proxy: trusts }), { silent: true })
      .use(router.routes())
      .callback()
  },
  'Koa below koa-mount': (llm, { trusts = false, publicUrl }) => {
    const app = new Koa({ proxy: trusts }).use((ctx, next) => {
      ctx.path = ctx.path.slice(prefix.length)
      return next()
    })
    return Object.assign(app, { silent: true }).use(koaRouter(llm, { publicUrl }).routes()).callback()
  },
  Fastify: (llm, { trusts = false, publicUrl }) =>
    fastifyHandler(llm, { prefix, publicUrl }, fastify({ trustProxy: trusts && 'loopback' })),
  Nest: (llm, { trusts, publicUrl }) =>
    nestHandler(llm, { path: prefix, ...(publicUrl !== undefined && { publicUrl }) }, (app) => {
      if (trusts) app.getHttpAdapter().getInstance().set('trust proxy', 'loopback')
    }),
  'Nest with a global prefix': (llm, { trusts, publicUrl }) =>
    nestHandler(llm, { path: 'llm', ...(publicUrl !== undefined && { publicUrl }) }, (app) => {
      app.setGlobalPrefix('api')
      if (trusts) app.getHttpAdapter().getInstance().set('trust proxy', 'loopback')
    }),
}

/** Servers without prefixes and trusted proxies, for which only the public URL tells how clients call them. */
const plainHosts: Readonly<Record<string, Host>> = {
  "Node's own server": (llm, { publicUrl }) =>
    toNodeHandler(routesFor(), llm, { ...(publicUrl !== undefined && { publicUrl }) }),
  fetch: (llm, { publicUrl }) =>
    fetchHost(toFetchHandler(routesFor(), llm, { ...(publicUrl !== undefined && { publicUrl }) })),
}

let llm: Llm
let key: string
let batch: string

beforeAll(async () => {
  llm = await createLlm({
    ...{ engine: scriptedEngine('Hello there.'), models: emptyFolder(), auth: 'keys', database: ':memory:' },
  })
  const { secret } = await llm.keys.create({ name: 'night' })
  key = secret
  const caller = await llm.keys.authenticate(secret)
  ;({ id: batch } = await llm.batches.create([item('a')], { caller }))
  for await (const _ of llm.batches.watch(batch, { signal: AbortSignal.timeout(untilEnded.timeout) }));
})

afterAll(() => llm.close())

async function start(host: Host, options: HostOptions = {}): Promise<string> {
  const { url, close } = await listen(host(llm, options))
  onTestFinished(close)
  return url
}

/** Returns the URL of the results that a request with these headers gets. */
async function resultsUrl(base: string, headers: Readonly<Record<string, string>> = {}): Promise<unknown> {
  const body = await new Promise<string>((resolve, reject) => {
    const call = request(`${base}/v1/messages/batches/${batch}`, {
      headers: { 'x-api-key': key, ...headers },
    })
    call.once('error', reject)
    call.once('response', (response) => void text(response).then(resolve, reject))
    call.end()
  })
  return (JSON.parse(body) as { readonly results_url: unknown }).results_url
}

const pathOf = () => `/v1/messages/batches/${batch}/results`

const forwarded = {
  'x-forwarded-for': '203.0.113.7',
  'x-forwarded-proto': 'https',
  'x-forwarded-host': 'api.example.com:8443',
}

/** Reads the results with Anthropic's client, which fetches their URL with its key. */
async function download(baseURL: string): Promise<readonly string[]> {
  const client = new Anthropic({ baseURL, apiKey: key, maxRetries: 0 })
  const ids: string[] = []
  for await (const { custom_id } of await client.messages.batches.results(batch)) ids.push(custom_id)
  return ids
}

describe.each(Object.entries({ ...hosts, ...plainHosts }))('mounted in %s', (name, host) => {
  const below = name in hosts ? prefix : ''

  test('the URL of the results has the origin and the prefix of the request, and can be downloaded', async () => {
    const url = await start(host)

    expect(await resultsUrl(url + below)).toBe(url + below + pathOf())
    expect(await resultsUrl(url + below, { host: 'models.example:81' })).toBe(
      `http://models.example:81${below}${pathOf()}`,
    )
    expect(await download(url + below)).toEqual(['a'])
  })

  test('headers of a proxy that the app does not trust have no effect', async () => {
    const url = await start(host)

    expect(await resultsUrl(url + below, forwarded)).toBe(url + below + pathOf())
  })

  test('behind a proxy that removes a part of the path, the public URL is the beginning', async () => {
    const url = await start(host, { trusts: true, publicUrl: 'https://api.example.com/v2/llm/' })

    expect(await resultsUrl(url + below)).toBe(`https://api.example.com/v2/llm${pathOf()}`)
    expect(await resultsUrl(url + below, forwarded)).toBe(`https://api.example.com/v2/llm${pathOf()}`)
  })

  test("Anthropic's client downloads the results through a proxy that removes a part of the path", async () => {
    let target = ''
    const { url, close } = await listen((req, res) => {
      const call = request(
        target + below + String(req.url).replace(/^\/outer/, ''),
        { method: req.method, headers: { ...req.headers, host: 'internal' } },
        (response) => {
          res.writeHead(response.statusCode ?? 502, response.headers)
          response.pipe(res)
        },
      )
      req.pipe(call)
    })
    onTestFinished(close)
    target = await start(host, { publicUrl: `${url}/outer` })

    expect(await download(`${url}/outer`)).toEqual(['a'])
  })
})

describe.each(Object.entries(hosts))('mounted in %s', (name, host) => {
  test('headers of a trusted proxy are the origin of the URL', async () => {
    const url = await start(host, { trusts: true })

    // Of several hosts, Fastify trusts the last, and the other frameworks trust the first.
    expect(await resultsUrl(url + prefix, forwarded)).toBe(`https://api.example.com:8443${prefix}${pathOf()}`)
    expect(
      await resultsUrl(url + prefix, { ...forwarded, 'x-forwarded-host': 'api.example.com, inner' }),
    ).toBe(`https://${name === 'Fastify' ? 'inner' : 'api.example.com'}${prefix}${pathOf()}`)
  })

  test.each(['evil.example/path', 'evil.example?query', 'a b', '"'])(
    'the invalid host %j of a trusted proxy does not become a part of the URL',
    async (invalid) => {
      const url = await start(host, { trusts: true })

      expect(await resultsUrl(url + prefix, { ...forwarded, 'x-forwarded-host': invalid })).toBe(pathOf())
    },
  )

  test("Anthropic's client downloads the results through a trusted proxy", async () => {
    const url = await start(host, { trusts: true })
    const proxy = await plainProxy(url, ({ host: called, ...headers }) => ({
      ...headers,
      ...{ host: 'internal', 'x-forwarded-host': String(called), 'x-forwarded-proto': 'http' },
    }))
    onTestFinished(proxy.close)

    expect(await download(proxy.url + prefix)).toEqual(['a'])
  })
})
