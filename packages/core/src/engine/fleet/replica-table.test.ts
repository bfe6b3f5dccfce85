import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { databases } from '../../../../../test/support/databases.ts'
import { checkDatabase } from '../../database/check.ts'
import { fleetEngine } from './index.ts'
import { openReplicaTable, type ReplicaTable } from './replica-table.ts'

describe.each(databases())('in $name', ({ fresh }) => {
  let database: string
  beforeEach(async () => {
    database = await fresh()
  })

  async function open(fleet = 'gpu'): Promise<ReplicaTable> {
    const table = await openReplicaTable({ database, fleet })
    onTestFinished(() => table.close())
    return table
  }

  test('replicas are added once, listed in their order, and removed', async () => {
    const table = await open()

    expect(await table.add('http://10.0.0.8:8000/v1')).toBe(true)
    expect(await table.add(new URL('http://10.0.0.7:8000'))).toBe(true)
    expect(await table.add('http://10.0.0.8:8000/')).toBe(false)
    expect([...(await table.list())].sort()).toEqual(['http://10.0.0.7:8000/', 'http://10.0.0.8:8000/'])
    expect(await table.remove('http://10.0.0.8:8000')).toBe(true)
    expect(await table.remove('http://10.0.0.8:8000')).toBe(false)
    expect(await table.list()).toEqual(['http://10.0.0.7:8000/'])
  })

  test('all processes of a database have the same replicas, and fleets have their own', async () => {
    const [first, second, other] = [await open(), await open(), await open('small')]

    await first.add('http://10.0.0.7:8000')

    expect(await second.list()).toEqual(['http://10.0.0.7:8000/'])
    expect(await other.list()).toEqual([])
  })

  test('a fleet follows its table', async () => {
    const table = await open()
    await table.add('http://127.0.0.1:1')
    const fleet = fleetEngine({ replicas: table.list, refreshMs: 100, health: false })
    onTestFinished(() => fleet.close())
    const urls = () => fleet.replicas().map(({ url }) => url)

    await fleet.listModels?.()
    expect(urls()).toEqual(['http://127.0.0.1:1/'])
    await table.add('http://127.0.0.1:2')
    await table.remove('http://127.0.0.1:1')

    await vi.waitFor(() => expect(urls()).toEqual(['http://127.0.0.1:2/']), 5_000)
  })

  test('the check of the database knows the table', async () => {
    await (await open()).add('http://10.0.0.7:8000')

    expect(await checkDatabase(database)).toMatchObject({ problems: [] })
  })

  test.each<[what: string, options: object, message: string]>([
    ['no fleet', {}, 'Expected `fleet` to be a name of 1 to 64 characters'],
    ['an empty name', { fleet: '' }, 'Expected `fleet` to be a name of 1 to 64 characters'],
    ['an unknown option', { fleet: 'gpu', table: 'x' }, 'Unknown option `table`'],
  ])('%s is a TypeError', async (_what, options, message) => {
    const opening = openReplicaTable({ database, ...options } as never)

    await expect(opening).rejects.toThrow(message)
    await expect(opening).rejects.toBeInstanceOf(TypeError)
  })

  test.each(['ftp://10.0.0.7', 'nonsense', 'http://user:secret@10.0.0.7'])(
    'the URL %s is a TypeError',
    async (url) => {
      const table = await open()

      await expect(table.add(url)).rejects.toBeInstanceOf(TypeError)
      expect(await table.list()).toEqual([])
    },
  )
})
