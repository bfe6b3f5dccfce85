/** API keys and their tenants in usage reports. */
import { createLlm, type KeySettings } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { expect, onTestFinished, test } from 'vitest'
import { databases } from '../support/databases.ts'
import { runLog } from '../support/run-log.ts'

test.each(databases())('in $name keys of one tenant are one row of a report by tenant', async ({ fresh }) => {
  const options = { engine: scriptedEngine('Hello.'), models: [], auth: 'keys', logger: runLog } as const
  const llm = await createLlm({ ...options, database: await fresh() })
  onTestFinished(() => llm.close())
  const ask = async (settings: KeySettings): Promise<string> => {
    const { key, secret } = await llm.keys.create(settings)
    const caller = await llm.keys.authenticate(secret)
    const { signal } = new AbortController()
    const input = { kind: 'text', prompt: ['Hi'] } as const
    for await (const _ of await llm.generate({ model: 'one', input }, { signal, caller }));
    return key.id
  }

  await ask({ name: 'first', tenant: 'a team' })
  await ask({ name: 'second', tenant: 'a team' })
  const alone = await ask({ name: 'third' })

  const rows = await llm.usage.report({ by: 'tenant' })
  expect(rows).toMatchObject([
    { group: 'a team', calls: 2 },
    { group: alone, calls: 1 },
  ])
  expect((await llm.usage.calls()).map(({ tenant }) => tenant).sort()).toEqual(['a team', 'a team', alone])
})

test.each(databases())(
  'usage reports show the current name of a key, even after its revocation ($name)',
  async ({ fresh }) => {
    const options = { engine: scriptedEngine('Hello.'), models: [], auth: 'keys', logger: runLog } as const
    const llm = await createLlm({ ...options, database: await fresh() })
    onTestFinished(() => llm.close())
    const { key, secret } = await llm.keys.create({ name: 'Zebra' })
    const ask = async (model: string): Promise<void> => {
      const caller = await llm.keys.authenticate(secret)
      const { signal } = new AbortController()
      const input = { kind: 'text', prompt: ['Hi'] } as const
      for await (const _ of await llm.generate({ model, input }, { signal, caller }));
    }

    await ask('one')
    await llm.keys.update(key.id, { name: 'Ant' })
    await ask('two')
    await llm.keys.update(key.id, { name: 'Bee' })
    await llm.keys.revoke(key.id)

    expect(await llm.usage.report({ by: 'key' })).toMatchObject([{ group: key.id, name: 'Bee', calls: 2 }])
    const calls = await llm.usage.calls()
    expect(calls.map(({ model, keyName }) => [model, keyName]).sort()).toEqual([
      ['one', 'Zebra'],
      ['two', 'Ant'],
    ])
  },
)
