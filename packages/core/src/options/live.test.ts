import { expect, onTestFinished, test } from 'vitest'
import { pacedEngine } from '../../../../test/support/paced-engine.ts'
import type { Caller } from '../accounts/auth/caller.ts'
import { createLlm } from '../create-llm.ts'
import type { Llm } from '../llm.ts'
import type { LlmOptions } from '../options.ts'
import { scriptedEngine } from '../testing/scripted-engine.ts'
import type { LiveOptions } from './live.ts'

const perToken = (usd: number) => ({
  '*': { inputPerMillionUsd: 0, outputPerMillionUsd: usd * 1_000_000 },
})

async function start(options: LlmOptions = {}): Promise<Llm> {
  const llm = await createLlm({ engine: scriptedEngine('one two three'), ...options })
  onTestFinished(() => llm.close())
  return llm
}

const generate = (llm: Llm, caller: Caller) =>
  llm.generate(
    {
      model: 'tiny',
      input: { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] },
    },
    { signal: new AbortController().signal, caller },
  )

async function read(events: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of events);
}

const costs = async (llm: Llm) => (await llm.usage.calls()).map(({ nanoUsd }) => Number(nanoUsd) / 1e9).sort()

test('a running call keeps its price, and the next one has the new price', async () => {
  const engine = pacedEngine(scriptedEngine('one two three'))
  const llm = await start({ engine, database: ':memory:', prices: perToken(0.01) })
  engine.allow(1)
  const running = await generate(llm, { id: 'ann' })

  llm.configure({ prices: perToken(0.02) })
  engine.allow(Number.POSITIVE_INFINITY)
  await read(running)
  await read(await generate(llm, { id: 'ann' }))

  expect(await costs(llm)).toEqual([0.03, 0.06])
})

test('a call with a reservation keeps its price, too', async () => {
  const engine = pacedEngine(scriptedEngine('one two three'))
  const llm = await start({ engine, database: ':memory:', prices: perToken(0.01) })
  engine.allow(1)
  const running = await generate(llm, { id: 'ann', spendingLimit: { usd: 100, period: 'day' } })

  llm.configure({ prices: {} })
  engine.allow(Number.POSITIVE_INFINITY)
  await read(running)

  expect(await costs(llm)).toEqual([0.03])
  await expect(generate(llm, { id: 'ann', spendingLimit: { usd: 100, period: 'day' } })).rejects.toThrow(
    'has no price',
  )
})

test('new limits of a tier apply to the next call, and a removed tier is unknown', async () => {
  const engine = pacedEngine(scriptedEngine('one two three'))
  const llm = await start({ engine, tiers: { free: { concurrent: 1 } } })
  engine.allow(1)
  const caller = { id: 'ann', tier: 'free' }
  const running = await generate(llm, caller)
  await expect(generate(llm, caller)).rejects.toMatchObject({ code: 'rate_limit' })

  llm.configure({ tiers: { free: { concurrent: 2 } } })
  engine.allow(Number.POSITIVE_INFINITY)

  await read(await generate(llm, caller))
  await read(running)
  llm.configure({ tiers: {} })
  await expect(generate(llm, caller)).rejects.toThrow('Unknown tier "free"')
})

test('a key may have a tier from the time when the tier exists', async () => {
  const llm = await start({ database: ':memory:', tiers: { free: {} } })
  await expect(llm.keys.create({ name: 'a', tier: 'paid' })).rejects.toThrow('tier: Expected one of free.')

  llm.configure({ tiers: { free: {}, paid: { weight: 2 } } })

  expect((await llm.keys.create({ name: 'a', tier: 'paid' })).key).toMatchObject({ tier: 'paid' })
})

test('changes nothing if one of the options is invalid', async () => {
  const llm = await start({ database: ':memory:', prices: perToken(0.01), tiers: { free: {} } })

  expect(() => llm.configure({ prices: perToken(0.02), tiers: { free: { weight: 0 } } })).toThrow(
    "`tiers['free'].weight` to be a whole number from 1 to 10",
  )
  expect(() => llm.configure({ tiers: {}, prices: { '*': { inputPerMillionUsd: 1 } } } as never)).toThrow(
    "prices['*'].outputPerMillionUsd",
  )

  await read(await generate(llm, { id: 'ann', tier: 'free' }))
  expect(await costs(llm)).toEqual([0.03])
})

test('new aliases apply to the next call, and a removed alias means no model', async () => {
  const engine = scriptedEngine('one')
  const llm = await start({ engine, aliases: { 'gpt-5': 'a', 'claude-*': 'a' } })

  llm.configure({ aliases: { 'gpt-5': 'b' } })
  for (const model of ['gpt-5', 'claude-x']) await llm.chat('Hi', { model })

  expect(engine.requests.map(({ model }) => model)).toEqual(['b', 'claude-x'])
  expect(() => llm.configure({ aliases: { a: 'b', b: 'c' } })).toThrow("`aliases['a']`")
  await llm.chat('Hi', { model: 'gpt-5' })
  expect(engine.requests.at(-1)?.model).toBe('b')
})

test('the app may change its objects without an effect on the limits', async () => {
  const llm = await start()
  const tiers = { free: { maxOutputTokens: 100 } }
  llm.configure({ tiers })

  tiers.free.maxOutputTokens = -1

  await read(await generate(llm, { id: 'ann', tier: 'free' }))
})

test.each([
  [{ local: {} }, '`local` cannot change while the app serves. Expected `prices`, `tiers` or `aliases`'],
  [null, 'Expected options, got null'],
  [{ prices: perToken(0.01) }, '`prices` need a database: set the option `database` of createLlm()'],
])('rejects %j, and says why', async (changes, message) => {
  const llm = await start()

  expect(() => llm.configure(changes as LiveOptions)).toThrow(message)
})
