/** An app in front of another one: only the app in front limits and charges, and the other one knows the tenants. */
import { type Caller, createLlm, type Llm, routesFor } from '@modelmount/core'
import type { Engine, EngineCall } from '@modelmount/core/engine'
import { fleetEngine } from '@modelmount/core/fleet'
import { toNodeHandler } from '@modelmount/core/http'
import { scriptedEngine } from '@modelmount/core/testing'
import { type ApiName, upstreamEngine } from '@modelmount/core/upstream'
import { expect, onTestFinished, test } from 'vitest'
import { collect } from '../../packages/core/src/engine/events.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'

const prices = { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 1 } }

/** @param scopes those of the key of the app in front */
async function started(
  scopes: readonly ('inference' | 'fleet')[],
  connect: (url: string, apiKey: string) => Engine,
) {
  const scripted = scriptedEngine('Hello there.')
  const calls: EngineCall[] = []
  const replica = await createLlm({
    engine: {
      ...scripted,
      generate: (request, call) => {
        calls.push(call)
        return scripted.generate(request, call)
      },
    },
    ...{ models: emptyFolder(), database: ':memory:', auth: 'keys', prices },
  })
  const { secret } = await replica.keys.create({
    ...{ name: 'front', scopes: [...scopes], limits: { requestsPerMinute: 1 } },
    spendingLimit: { usd: 0.000_01, period: 'day' },
  })
  const behind = await listen(toNodeHandler(routesFor(), replica))
  const llm = await createLlm({
    engine: connect(behind.url, secret),
    ...{ models: emptyFolder(), database: ':memory:', prices, tiers: { gold: { weight: 3 } } },
  })
  onTestFinished(async () => {
    await llm.close()
    await behind.close()
    await replica.close()
  })
  return { llm, replica, calls }
}

async function ask(llm: Llm, caller: Caller, background = false): Promise<string> {
  const input = {
    kind: 'chat',
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
  } as const
  const { signal } = new AbortController()
  const answer = await llm.as(caller).generate({ model: 'tiny', input, maxTokens: 8 }, { signal, background })
  return (await collect(answer)).text
}

const engines: Readonly<Record<string, (url: string, apiKey: string) => Engine>> = {
  ...Object.fromEntries(
    (['openai', 'anthropic', 'ollama', 'modelmount'] satisfies ApiName[]).map((api) => [
      `upstreamEngine over ${api}`,
      (url: string, apiKey: string) => upstreamEngine({ url, api, apiKey, forwardTenants: true }),
    ]),
  ),
  fleetEngine: (url, apiKey) => fleetEngine({ replicas: [url], apiKey, forwardTenants: true }),
}

test.each(Object.entries(engines))(
  '%s: the other app knows tenants, weights and background calls, and only the app in front charges',
  async (_name, connect) => {
    const { llm, replica, calls } = await started(['inference', 'fleet'], connect)

    expect(await ask(llm, { id: 'ann', tenant: 'team 1 & ä', tier: 'gold' })).toBe('Hello there.')
    expect(await ask(llm, { id: 'bob' }, true)).toBe('Hello there.')
    expect(await ask(llm, { id: 'eve', tenant: 'x'.repeat(20_000) })).toBe('Hello there.')

    expect(calls).toMatchObject([
      { tenant: 'team 1 & ä', weight: 3, background: false },
      { tenant: 'bob', weight: 1, background: true },
      { tenant: expect.stringMatching(/^[\da-f]{64}$/) },
    ])
    expect((await llm.usage.report({ by: 'key' })).map(({ group }) => group).sort()).toEqual([
      'ann',
      'bob',
      'eve',
    ])
    expect(await replica.usage.report({ by: 'key' })).toEqual([])
  },
)

test.each<ApiName>(['openai', 'modelmount'])(
  'over %s, a key without the scope fleet is a mistake in the setup of the app in front',
  async (api) => {
    const { llm, calls } = await started(['inference'], (url, apiKey) =>
      upstreamEngine({ url, api, apiKey, forwardTenants: true }),
    )

    await expect(ask(llm, { id: 'ann' })).rejects.toMatchObject({
      code: 'upstream',
      details: { setup: true },
    })
    expect(calls).toEqual([])
  },
)

test('without the option, the other app sees one caller, which it limits and charges', async () => {
  const { llm, replica, calls } = await started(['inference', 'fleet'], (url, apiKey) =>
    upstreamEngine({ url, apiKey }),
  )

  await ask(llm, { id: 'ann' })
  await expect(ask(llm, { id: 'bob' })).rejects.toMatchObject({ code: 'overloaded' })

  expect(calls).toHaveLength(1)
  expect(calls[0]?.tenant).not.toBe('ann')
  expect(await replica.usage.report({ by: 'key' })).toMatchObject([{ calls: 1 }])
})

test('a value that is no boolean is a mistake of the app', () => {
  const options = { url: 'http://127.0.0.1:1', forwardTenants: 'yes' as never }
  expect(() => upstreamEngine(options)).toThrow('Expected `forwardTenants` to be true or false')
  expect(() =>
    upstreamEngine({ url: 'http://127.0.0.1:1', api: 'modelmount', forwardTenants: false }),
  ).toThrow('Expected `forwardTenants` to be true with the API modelmount')
})
