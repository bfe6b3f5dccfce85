/** What the prices of an app mean for calls, reports and the admin API. */
import { createLlm, LlmError } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { adminRouter } from '@modelmount/express'
import express from 'express'
import request from 'supertest'
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'

const price = { inputPerMillionUsd: 1, outputPerMillionUsd: 2 }
const spender = { id: 'ann', spendingLimit: { usd: 1, period: 'day' } } as const

async function start(prices: Record<string, typeof price>) {
  const scripted = scriptedEngine('Hello there.')
  const used: string[] = []
  const engine: typeof scripted = {
    ...scripted,
    countTokens: (...args) => {
      used.push('countTokens')
      return scripted.countTokens(...args)
    },
    generate: (...args) => {
      used.push('generate')
      if (args[0].model === 'nope') throw new LlmError('not_found', 'The model "nope" does not exist.')
      return scripted.generate(...args)
    },
  }
  const llm = await createLlm({
    ...{ engine, prices, models: emptyFolder(), auth: 'keys', database: ':memory:' },
  })
  const server = await listen(express().use('/admin', adminRouter(llm)))
  onTestFinished(async () => {
    await server.close()
    await llm.close()
  })
  const { secret } = await llm.keys.create({ name: 'viewer', scopes: ['admin:read'] })
  const read = async (path: string) =>
    (await request(server.url).get(`/admin${path}`).set('x-api-key', secret)).body
  return { llm, used, read }
}

test('the admin API lists the prices as they are now, and the models without one', async () => {
  const { llm, read } = await start({ other: { ...price, cachedInputPerMillionUsd: 0.5 } as typeof price })
  const before = await read('/prices')

  llm.configure({ prices: { TINY: price } })
  const named = await read('/prices')
  llm.configure({ prices: { '*': price } })
  const all = await read('/prices')

  expect(before).toEqual({
    data: [{ model: 'other', ...price, cachedInputPerMillionUsd: 0.5 }],
    unpricedModels: ['tiny:latest'],
  })
  expect(named).toEqual({ data: [{ model: 'TINY', ...price }], unpricedModels: [] })
  expect(all).toEqual({ data: [{ model: '*', ...price }], unpricedModels: [] })
})

test('a model without a price is refused before the engine has to load it', async () => {
  const { llm, used } = await start({})

  await expect(llm.as(spender).chat('Hello', { model: 'tiny' })).rejects.toMatchObject({
    code: 'permission',
    message: expect.stringContaining('has no price'),
  })

  expect(used).toEqual([])
})

test('only calls that have used tokens without a price count as unpriced', async () => {
  const { llm, read } = await start({})
  await llm.as({ id: 'bob' }).chat('Hello', { model: 'tiny' })
  await expect(llm.as({ id: 'bob' }).chat('Hello', { model: 'nope' })).rejects.toThrow('does not exist')

  const { data } = await read('/usage?by=model')

  expect(data).toMatchObject([
    { group: 'nope', calls: 1, unpricedCalls: 0 },
    { group: 'tiny:latest', calls: 1, unpricedCalls: 1 },
  ])
})
