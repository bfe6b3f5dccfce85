/**
 * Wrong keys were looked up as often as a client sent them. A limit by address must not lock out the valid keys
 * behind the same address, such as those of an office or of all clients of a proxy.
 */
import type { RequestListener } from 'node:http'
import { createLlm, type LlmOptions } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { adminRouter } from '@modelmount/express'
import { llmRouter as koaRouter } from '@modelmount/koa'
import express from 'express'
import Koa from 'koa'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'
import { expresses } from '../../support/expresses.ts'
import { listen } from '../../support/listen.ts'
import { type MountRoutes, mounts } from '../../support/mounts.ts'
import { nestHandler } from '../../support/nest.ts'
import { chats, post } from '../../support/served.ts'

const models = emptyFolder()

async function start(mount: MountRoutes, options: LlmOptions = {}) {
  const llm = await createLlm({
    engine: scriptedEngine('Hello there.'),
    models,
    auth: 'keys',
    database: ':memory:',
    ...options,
  })
  const { secret } = await llm.keys.create({ name: 'good' })
  const { url, close } = await listen(mount(llm))
  onTestFinished(async () => {
    await close()
    await llm.close()
  })
  return { url, secret, llm }
}

/** A key of the right form that was never created. */
const wrongKey = (index: number): string => `sk-mm-${`${index}`.padStart(16, '0')}-${'x'.repeat(43)}`

/** Sends wrong keys until 429, at most 100. Returns the last response and the number of responses before it. */
async function tryKeys(url: string, headers: Readonly<Record<string, string>> = {}, chat = chats[0]) {
  for (let index = 0; index < 100; index++) {
    const response = await post(`${url}${chat?.path}`, chat?.body, {
      'x-api-key': wrongKey(index),
      ...headers,
    })
    if (response.status !== 401) return { response, failures: index }
    await response.text()
  }
  return { response: undefined, failures: 100 }
}

const message = expect.stringContaining('Valid keys are still accepted')
/** The 429 of each API. */
const refusals: Readonly<Record<string, object>> = {
  '/v1/chat/completions': { error: { message, type: 'requests', code: 'rate_limit_exceeded' } },
  '/v1/messages': { type: 'error', error: { type: 'rate_limit_error', message } },
  '/api/chat': { error: message },
}

describe.each(Object.entries(mounts))('in %s', (_name, mount) => {
  test.each(chats)('after 30 wrong keys, $path responds with 429 and retry-after', async (chat) => {
    const { url } = await start(mount)

    const { response, failures } = await tryKeys(url, {}, chat)

    expect(response?.status).toBe(429)
    // One more for each two seconds that the requests took.
    expect(failures).toBeGreaterThanOrEqual(30)
    expect(failures).toBeLessThan(60)
    expect(response?.headers.get('retry-after')).toMatch(/^[12]$/)
    expect(await response?.json()).toMatchObject(refusals[chat.path] as object)
  })

  test('valid keys from the same address are accepted all the time, also new ones', async () => {
    const { url, secret, llm } = await start(mount)
    await tryKeys(url)

    for (let index = 0; index < 3; index++) {
      const key = (await llm.keys.create({ name: `new ${index}` })).secret
      for (const { path, body } of chats)
        for (const headers of [{ 'x-api-key': secret }, { authorization: `Bearer ${key}` }])
          expect((await post(url + path, body, headers)).status).toBe(200)
      expect((await tryKeys(url)).response?.status).toBe(429)
    }
  })

  test('a request without a key still gets a 401, and a revoked key counts', async () => {
    const { url, llm } = await start(mount, { maxFailedAuthentications: 1 })
    const { key, secret } = await llm.keys.create({ name: 'old' })
    await llm.keys.revoke(key.id)
    const [chat] = chats as [(typeof chats)[number]]
    const statusWith = async (headers: Record<string, string>) =>
      (await post(url + chat.path, chat.body, headers)).status

    expect([await statusWith({}), await statusWith({})]).toEqual([401, 401])
    expect(await statusWith({ 'x-api-key': secret })).toBe(401)
    expect(await statusWith({ 'x-api-key': secret })).toBe(429)
    expect(await statusWith({})).toBe(401)
  })
})

test('a flood of wrong keys causes few look-ups, and valid keys from its address do not wait for it', async () => {
  const { url, secret, llm } = await start(mounts["Node's own server"] as MountRoutes, {
    maxFailedAuthentications: 5,
  })
  const [chat] = chats as [(typeof chats)[number]]
  const statusWith = async (key: string) =>
    (await post(url + chat.path, chat.body, { 'x-api-key': key })).status
  const created = (await llm.keys.create({ name: 'new' })).secret
  expect(await statusWith(secret)).toBe(200)
  const lookups = vi.spyOn(llm.keys, 'findCallers')

  const flood = Promise.all(Array.from({ length: 300 }, (_, index) => statusWith(wrongKey(index))))
  const [known, unknown] = await Promise.all([statusWith(secret), statusWith(created)])
  const statuses = await flood

  expect([known, unknown]).toEqual([200, 200])
  expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(290)
  expect(statuses.filter((status) => status === 401).length).toBeGreaterThanOrEqual(5)
  // The known key is looked up at once, and only that one. The rest of the flood has ten look-ups per second.
  const sizes = lookups.mock.calls.map(([secrets]) => secrets.length)
  expect(sizes[lookups.mock.calls.findIndex(([secrets]) => secrets.includes(secret))]).toBe(1)
  expect(sizes.length).toBeLessThan(60)
})

test('the admin API limits wrong keys in the same way', async () => {
  const { url } = await start((llm) => express().use('/admin', adminRouter(llm)), {
    maxFailedAuthentications: 1,
  })
  const statusWith = async (key: string) => (await post(`${url}/admin/keys`, {}, { 'x-api-key': key })).status

  expect([await statusWith(wrongKey(1)), await statusWith(wrongKey(2))]).toEqual([401, 429])
})

/** Apps that trust the proxy in front of them. */
const trusting: Readonly<Record<string, MountRoutes>> = {
  ...Object.fromEntries(
    expresses.map(({ version, express, llmRouter }): [string, MountRoutes] => [
      `Express ${version}`,
      (llm) => express().set('trust proxy', 'loopback').use(llmRouter(llm)) as RequestListener,
    ]),
  ),
  Koa: (llm) =>
    Object.assign(new Koa(), { silent: true, proxy: true }).use(koaRouter(llm).routes()).callback(),
  Nest: (llm) =>
    nestHandler(llm, {}, (app) => app.getHttpAdapter().getInstance().set('trust proxy', 'loopback')),
}

test.each(Object.entries(trusting))(
  '%s counts the clients of a trusted proxy apart',
  async (_name, mount) => {
    const { url } = await start(mount, { maxFailedAuthentications: 2 })
    const failuresOf = async (address: string) =>
      (await tryKeys(url, { 'x-forwarded-for': address })).failures

    expect(await failuresOf('203.0.113.7')).toBe(2)
    expect(await failuresOf('203.0.113.8')).toBe(2)
    // Addresses of one /64.
    expect(await failuresOf('2001:db8::1')).toBe(2)
    expect(await failuresOf('2001:db8::2')).toBe(0)
    expect(await failuresOf('2001:db8:0:1::2')).toBe(2)
  },
)

test.each(Object.entries(mounts))(
  '%s believes no address of a client that is no trusted proxy',
  async (_name, mount) => {
    const { url } = await start(mount, { maxFailedAuthentications: 2 })

    await tryKeys(url, { 'x-forwarded-for': '203.0.113.7' })

    expect((await tryKeys(url, { 'x-forwarded-for': '203.0.113.8' })).failures).toBe(0)
  },
)
