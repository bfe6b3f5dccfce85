/** The behavior that all stores share, in memory and in each database. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { databases } from '../../../../test/support/databases.ts'
import { openDatabase } from '../storage/open.ts'
import { DatabaseStore } from './database-store.ts'
import { MemoryStore } from './memory-store.ts'
import { openResponseData } from './response-data.ts'
import {
  type ConversationItem,
  overheadBytes,
  type ResponseStore,
  type StoreBounds,
} from './response-store.ts'

const bounds: StoreBounds = { maxBytes: 1_000_000, maxBytesPerTenant: 500_000, maxAgeMs: 3_600_000 }

interface OpenedStore {
  readonly store: ResponseStore
  /** Applies the bounds, which a database does in the background. */
  trim(): Promise<void>
}
type OpenStore = (given?: Partial<StoreBounds>) => Promise<OpenedStore>

const openMemory: OpenStore = async (given) => {
  const store = new MemoryStore({ ...bounds, ...given })
  onTestFinished(() => store.close())
  return { store, trim: async () => {} }
}

const openIn = async (location: string, given?: Partial<StoreBounds>): Promise<DatabaseStore> => {
  const database = await openDatabase(location)
  const onError = (cause: unknown) => {
    throw cause
  }
  const data = await openResponseData(database)
  const store = new DatabaseStore(database, data, { ...bounds, ...given, onError })
  onTestFinished(async () => {
    await store.close()
    await database.close()
  })
  return store
}

const stores: readonly (readonly [name: string, open: OpenStore])[] = [
  ['memory', openMemory],
  ...databases().map(({ name, fresh }): readonly [string, OpenStore] => [
    name,
    async (given) => {
      const store = await openIn(await fresh(), given)
      return { store, trim: () => store.trim() }
    },
  ]),
]

const response = (id: string, body = '{}') => ({ id, body, input: '[]' })
const conversation = (id: string) => ({ id, createdAt: new Date(), metadata: { a: 'é' } })
const item = (id: string, responseId?: string): ConversationItem => ({ id, body: `"${id}"`, responseId })

describe.each(stores)('a response store in %s', (_, open) => {
  test('a response is found as it was saved, by its tenant only, until it is deleted', async () => {
    const { store } = await open()
    const own = store.forTenant('team')
    const saved = { id: 'resp_1', body: '{"a":"é\\u0000"}', input: '[1]', previousId: 'resp_0' }
    await own.saveResponse(saved, [])

    expect(await own.findResponse('resp_1')).toMatchObject(saved)
    const other = store.forTenant('other')
    expect(await other.findResponse('resp_1')).toBeUndefined()
    expect(await other.deleteResponse('resp_1')).toBe(false)
    expect(await own.deleteResponse('resp_1')).toBe(true)
    expect(await own.findResponse('resp_1')).toBeUndefined()
    expect(await own.deleteResponse('resp_1')).toBe(false)
  })

  test('a conversation keeps its items in order, by its tenant only', async () => {
    const { store } = await open()
    const own = store.forTenant('team')
    const other = store.forTenant('other')
    await own.saveConversation(conversation('conv_1'))
    await own.saveResponse({ ...response('resp_1'), conversationId: 'conv_1' }, [
      item('msg_1', 'resp_1'),
      item('msg_2', 'resp_1'),
    ])
    await Promise.all([own.addItems('conv_1', [item('msg_3')]), own.addItems('conv_1', [item('msg_4')])])

    expect(await own.findConversation('conv_1')).toMatchObject({ metadata: { a: 'é' } })
    const ids = async () => (await own.listItems('conv_1')).map(({ id }) => id)
    expect((await ids()).slice(0, 2)).toEqual(['msg_1', 'msg_2'])
    expect((await ids()).slice(2).sort()).toEqual(['msg_3', 'msg_4'])
    expect(await other.findConversation('conv_1')).toBeUndefined()
    expect(await other.listItems('conv_1')).toEqual([])
    expect(await other.addItems('conv_1', [item('msg_9')])).toBe(false)
    expect(await other.deleteItem('conv_1', 'msg_1')).toBe(false)
    expect(await other.deleteConversation('conv_1')).toBe(false)
    await other.saveConversation({ ...conversation('conv_1'), metadata: { stolen: 'yes' } })
    expect(await own.findConversation('conv_1')).toMatchObject({ metadata: { a: 'é' } })

    expect(await own.deleteItem('conv_1', 'msg_3')).toBe(true)
    expect(await own.deleteItem('conv_1', 'msg_3')).toBe(false)
    await own.saveConversation({ ...conversation('conv_1'), metadata: { b: 'c' } })
    expect(await own.findConversation('conv_1')).toMatchObject({ metadata: { b: 'c' } })
    expect(await own.deleteResponse('resp_1')).toBe(true)
    expect(await ids()).toEqual(['msg_4'])
    expect(await own.deleteConversation('conv_1')).toBe(true)
    expect(await ids()).toEqual([])
    expect(await own.addItems('conv_1', [item('msg_5')])).toBe(false)
  })

  test('a tenant that stores too much loses what it has not used for longest, and others lose nothing', async () => {
    const { store, trim } = await open({ maxBytesPerTenant: 3 * (overheadBytes + 1_002) })
    const own = store.forTenant('team')
    const text = JSON.stringify('é'.repeat(499))
    await store.forTenant('other').saveResponse(response('resp_other', text), [])
    for (const id of ['resp_1', 'resp_2', 'resp_3']) {
      await own.saveResponse(response(id, text), [])
      await nextMillisecond()
    }
    expect(await own.findResponse('resp_1')).toBeDefined()
    await nextMillisecond()

    await own.saveResponse(response('resp_4', text), [])
    await trim()

    const found = async (id: string) => (await own.findResponse(id)) !== undefined
    expect(await Promise.all(['resp_1', 'resp_2', 'resp_3', 'resp_4'].map(found))).toEqual([
      ...[true, false, true, true],
    ])
    expect(await store.forTenant('other').findResponse('resp_other')).toBeDefined()
  })

  test('the sizes of all tenants together are limited, and a larger response is not stored', async () => {
    const { store, trim } = await open({
      maxBytes: 4 * (overheadBytes + 1_002),
      maxBytesPerTenant: 2 * (overheadBytes + 1_002),
    })
    const text = JSON.stringify('a'.repeat(998))
    const tenants = ['a', 'b', 'c']
    for (const tenant of tenants)
      for (const id of ['1', '2']) {
        await store.forTenant(tenant).saveResponse(response(`resp_${tenant}${id}`, text), [])
        await nextMillisecond()
      }
    await store.forTenant('d').saveResponse(response('resp_d', JSON.stringify('a'.repeat(5_000))), [])
    await trim()

    let found = 0
    for (const tenant of tenants)
      for (const id of ['1', '2'])
        if (await store.forTenant(tenant).findResponse(`resp_${tenant}${id}`)) found++
    expect(found).toBe(4)
    expect(await store.forTenant('c').findResponse('resp_c2')).toBeDefined()
    expect(await store.forTenant('d').findResponse('resp_d')).toBeUndefined()
  })

  test('deleting a tenant deletes its responses and conversations, and says how many', async () => {
    const { store } = await open()
    const began = Date.now() - 60_000
    for (const tenant of ['team', 'other']) {
      const own = store.forTenant(tenant)
      await own.saveResponse(response(`resp_${tenant}`), [])
      await own.saveConversation(conversation(`conv_${tenant}`))
      await own.addItems(`conv_${tenant}`, [item('msg_1')])
    }

    expect(await store.hasCallsBefore?.('team', began)).toBe(false)
    expect(await store.hasCallsBefore?.('team', Date.now() + 60_000)).toBe(true)
    expect(await store.deleteTenant({ tenant: 'team', usage: 'delete' })).toEqual({
      ...{ responses: 1, conversations: 1 },
    })
    expect(await store.forTenant('team').findResponse('resp_team')).toBeUndefined()
    expect(await store.forTenant('team').listItems('conv_team')).toEqual([])
    expect(await store.forTenant('other').listItems('conv_other')).toHaveLength(1)
    expect(await store.hasCallsBefore?.('team', Date.now() + 60_000)).toBe(false)
  })
})

/** Uses of different entries have different times. */
const nextMillisecond = () => new Promise((resolve) => setTimeout(resolve, 2))

test('in memory, an entry expires after its last use, and its memory is free within a minute', async () => {
  let now = 1
  const store = new MemoryStore({ ...bounds, maxAgeMs: 1_000 }, () => now)
  onTestFinished(() => store.close())
  const own = store.forTenant('team')
  await own.saveResponse(response('resp_1'), [])
  expect(store.bytes).toBe(overheadBytes + 4)

  now += 900
  expect(await own.findResponse('resp_1')).toBeDefined()
  now += 900
  expect(await own.findResponse('resp_1')).toBeDefined()
  now += 1_001
  await expect.poll(() => store.bytes, { timeout: 5_000 }).toBe(0)
  expect(await own.findResponse('resp_1')).toBeUndefined()
})

describe.each(databases())('responses in $name', ({ fresh }) => {
  test('another process finds them, and expired ones are deleted', async () => {
    const location = await fresh()
    const first = await openIn(location)
    await first.forTenant('team').saveResponse(response('resp_1'), [])
    await first.forTenant('team').saveConversation(conversation('conv_1'))
    await first.forTenant('team').addItems('conv_1', [item('msg_1')])

    const other = await openIn(location)
    expect(await other.forTenant('team').findResponse('resp_1')).toBeDefined()
    await nextMillisecond()
    await (await openIn(location, { maxAgeMs: 1 })).trim()
    expect(await other.forTenant('team').findResponse('resp_1')).toBeUndefined()
    expect(await other.forTenant('team').listItems('conv_1')).toEqual([])
  })
})
