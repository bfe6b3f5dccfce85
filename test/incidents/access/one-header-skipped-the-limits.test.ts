/**
 * D-6: a key in `x-api-key` skipped the restrictions that the same key had in `authorization`. Here each
 * restriction meets each way to send a key.
 */
import { createLlm, type KeySettings } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import { beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'
import { listen } from '../../support/listen.ts'
import { chats, post } from '../../support/served.ts'

const models = emptyFolder()
const ways: Readonly<Record<string, (key: string) => Record<string, string>>> = {
  'x-api-key': (key) => ({ 'x-api-key': key }),
  'X-Api-Key': (key) => ({ 'X-Api-Key': key }),
  'authorization: Bearer': (key) => ({ authorization: `Bearer ${key}` }),
  'authorization: bearer': (key) => ({ authorization: `bearer ${key}` }),
  'both headers': (key) => ({ 'x-api-key': key, authorization: `Bearer ${key}` }),
}

let url: string
let keyOf: (settings: Omit<KeySettings, 'name'>) => Promise<{ id: string; secret: string }>
let revoke: (id: string) => Promise<unknown>
beforeAll(async () => {
  const llm = await createLlm({
    engine: scriptedEngine('Hello there.'),
    models,
    auth: 'keys',
    database: ':memory:',
    prices: { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } },
  })
  const server = await listen(express().use(llmRouter(llm)))
  url = server.url
  keyOf = async (settings) => {
    const { key, secret } = await llm.keys.create({ name: 'ann', ...settings })
    return { id: key.id, secret }
  }
  revoke = (id) => llm.keys.revoke(id)
  return async () => {
    await server.close()
    await llm.close()
  }
})

/** Creates a key that may not call the model, and the status of its call. */
const restrictions: Readonly<Record<string, [make: () => Promise<string>, status: number]>> = {
  'another scope': [async () => (await keyOf({ scopes: ['models'] })).secret, 403],
  'other models': [async () => (await keyOf({ models: ['other'] })).secret, 403],
  revocation: [
    async () => {
      const { id, secret } = await keyOf({})
      await revoke(id)
      return secret
    },
    401,
  ],
  'a used-up rate limit': [
    async () => {
      const { secret } = await keyOf({ limits: { requestsPerMinute: 1 } })
      await post(`${url}${chats[0]?.path}`, chats[0]?.body, { 'x-api-key': secret })
      return secret
    },
    429,
  ],
  'a used-up spending limit': [
    async () => (await keyOf({ spendingLimit: { usd: '0.000000001', period: 'day' } })).secret,
    429,
  ],
}

test.each(Object.entries(restrictions))(
  '%s applies to every way to send a key',
  async (_what, [make, status]) => {
    const key = await make()

    for (const { path, body } of chats)
      for (const [way, headersOf] of Object.entries(ways)) {
        const answer = await post(url + path, body, headersOf(key))
        expect([path, way, answer.status]).toEqual([path, way, expect.toBeOneOf(statusesOf(status))])
      }
  },
)

/** Anthropic's API has its own status for spending limits. */
const statusesOf = (status: number): number[] => (status === 429 ? [429, 400] : [status])

test('two different keys, or one key beside a wrong one, get a 401', async () => {
  const [one, other] = [await keyOf({}), await keyOf({})]

  for (const { path, body } of chats)
    for (const [key, bearer] of [
      [one.secret, other.secret],
      [one.secret, 'wrong'],
      ['wrong', one.secret],
    ] as const) {
      const headers = { 'x-api-key': key, authorization: `Bearer ${bearer}` }
      expect((await post(url + path, body, headers)).status).toBe(401)
    }
})
