/** What happens to batches and files over time, and after a process was killed. */
import { setTimeout as delay } from 'node:timers/promises'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { databases } from '../../../../test/support/databases.ts'
import { createLlm } from '../create-llm.ts'
import type { Engine } from '../engine/engine.ts'
import type { Llm } from '../llm.ts'
import type { LlmOptions } from '../options.ts'
import type { Database } from '../storage/database.ts'
import { openDatabase } from '../storage/open.ts'
import { scriptedEngine } from '../testing/scripted-engine.ts'

const dayMs = 86_400_000

const ask = (id: string) => ({
  custom_id: id,
  params: { model: 'tiny', max_tokens: 10, messages: [{ role: 'user', content: id }] },
})

async function* text(content: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(content)
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await delay(20)
}

describe.each(databases())('in $name', ({ fresh }) => {
  let location: string
  let database: Database

  beforeEach(async () => {
    location = await fresh()
    database = await openDatabase(location)
    return () => database.close()
  })

  async function open(options: LlmOptions = {}): Promise<Llm> {
    const engine = options.engine ?? scriptedEngine('one')
    const llm = await createLlm({ database: location, models: [], ...options, engine })
    onTestFinished(() => llm.close())
    return llm
  }

  /** Runs a batch to its end, closes the app, and returns the id. */
  async function runBatch(...ids: readonly string[]): Promise<string> {
    const llm = await open()
    const { id } = await llm.batches.create(ids.map(ask))
    for await (const _ of llm.batches.watch(id));
    await llm.close()
    return id
  }

  const count = async (table: string): Promise<number> => {
    const [row] = await database.query<{ n: number }>(`SELECT count(*) AS n FROM modelmount_${table}`)
    return row?.n ?? 0
  }

  test('results are deleted 29 days after the creation of their batch, which remains', async () => {
    const [old, recent] = [await runBatch('a', 'b'), await runBatch('a')]
    const age = (id: string, days: number) =>
      database.query('UPDATE modelmount_batches SET created_at = created_at - ? WHERE id = ?', [
        days * dayMs,
        id,
      ])
    await age(old, 30)
    await age(recent, 28)

    const llm = await open()
    await until(async () => (await llm.batches.get(old)).archivedAt !== undefined)

    expect(await llm.batches.get(old)).toMatchObject({ status: 'ended', counts: { succeeded: 2 } })
    await expect(llm.batches.resultLines(old)).rejects.toMatchObject({ code: 'not_found' })
    await until(async () => (await count('batch_items')) === 1)
    expect((await llm.batches.get(recent)).archivedAt).toBeUndefined()
  })

  test('results are kept as long as the app wants', async () => {
    const id = await runBatch('a')
    await database.query('UPDATE modelmount_batches SET created_at = created_at - ?', [400 * dayMs])

    const llm = await open({ batches: { retentionDays: 'forever' } })
    await llm.batches.create([ask('b')])

    expect((await llm.batches.get(id)).archivedAt).toBeUndefined()
    expect(await count('batch_items')).toBe(2)
  })

  test('files are deleted when they have expired', async () => {
    const first = await open()
    const { id } = await first.batches.files.create({ purpose: 'batch', filename: 'a.jsonl' }, text('{}'))
    await first.close()
    await database.query(
      'UPDATE modelmount_files SET created_at = created_at - ?, expires_at = expires_at - ?',
      [31 * dayMs, 31 * dayMs],
    )

    const llm = await open()

    await until(async () => (await count('file_chunks')) === 0)
    await expect(llm.batches.files.get(id)).rejects.toMatchObject({ code: 'not_found' })
  })

  test('a file comes back byte by byte, in chunks of any size, and its deletion frees the storage', async () => {
    const llm = await open()
    const bytes = Buffer.alloc(700_000, 'größer 🦊\0\xff')
    async function* pieces(): AsyncGenerator<Uint8Array> {
      for (let from = 0; from < bytes.length; from += 65_001) yield bytes.subarray(from, from + 65_001)
    }
    const stored = await llm.batches.files.create({ purpose: 'batch', filename: 'a.jsonl' }, pieces())

    const read: Buffer[] = []
    for await (const chunk of await llm.batches.files.read(stored.id)) read.push(Buffer.from(chunk))

    expect(stored).toMatchObject({ bytes: 700_000, filename: 'a.jsonl', purpose: 'batch' })
    expect(Buffer.concat(read).equals(bytes)).toBe(true)
    await llm.batches.files.delete(stored.id)
    await until(async () => (await count('file_chunks')) === 0 && (await count('files')) === 0)
  })

  test('what one tenant stores is limited, and what all store', async () => {
    const llm = await open({ batches: { maxBytes: '20kb', maxBytesPerTenant: '8kb' } })
    const store = (id: string) =>
      llm.as({ id }).batches.files.create({ purpose: 'batch', filename: 'a' }, text('x'.repeat(7_000)))

    await store('ann')
    await expect(store('ann')).rejects.toMatchObject({ code: 'rate_limit' })
    await store('ben')
    await expect(store('eve')).rejects.toMatchObject({ code: 'overloaded' })

    expect((await llm.batches.files.list({ limit: 10 })).files).toHaveLength(2)
  })

  test('a file or a batch over its limit leaves nothing behind', async () => {
    const llm = await open({ batches: { maxBatchBytes: 2_000, maxRequests: 3 } })

    await expect(
      llm.batches.files.create({ purpose: 'batch', filename: 'a' }, text('x'.repeat(2_001))),
    ).rejects.toMatchObject({ code: 'too_large' })
    await expect(
      llm.batches.createFromJson(text(`{"requests":["${'x'.repeat(2_001)}`)),
    ).rejects.toMatchObject({
      code: 'too_large',
    })
    await expect(llm.batches.create(['a', 'b', 'c', 'd'].map(ask))).rejects.toMatchObject({
      message: 'requests: A batch can have at most 3 requests.',
    })

    await until(async () => (await count('batches')) + (await count('files')) === 0)
  })

  test('what a killed process has left is deleted: an unfinished batch, and an unfinished upload', async () => {
    await (await open()).close()
    const past = Date.now() - 1_000
    await database.query("INSERT INTO modelmount_batch_workers (id, expires_at) VALUES ('killed', ?)", [past])
    for (const [id, worker] of [
      ['msgbatch_killed', 'killed'],
      ['msgbatch_deleted', null],
    ] as const)
      await database.query(
        `INSERT INTO modelmount_batches (id, api, endpoint, tenant, caller, status, worker, created_at, expires_at)
         VALUES (?, 'anthropic', '/v1/messages', 'ann', 'null', 'hidden', ?, ?, ?)`,
        [id, worker, past, past + dayMs],
      )
    await database.query(
      `INSERT INTO modelmount_batch_items (batch, number, custom_id, params, model, prefix, status)
       VALUES ('msgbatch_killed', 0, '"a"', '{}', 'tiny', '', 'pending')`,
    )
    await database.query(
      `INSERT INTO modelmount_files (id, tenant, purpose, filename, status, worker, created_at)
       VALUES ('file-killed', 'ann', '', '', 'uploading', 'killed', ?)`,
      [past],
    )

    const llm = await open()

    await until(
      async () => (await count('batches')) + (await count('batch_items')) + (await count('files')) === 0,
    )
    expect((await llm.batches.list()).batches).toEqual([])
  })

  test('a batch and an upload that are being written stay', async () => {
    const llm = await open()
    let finish: () => void = () => {}
    const gate = new Promise<void>((resolve) => {
      finish = resolve
    })
    async function* requests() {
      yield ask('a')
      await gate
      yield ask('b')
    }
    const creating = llm.batches.create(requests())
    await until(async () => (await count('batches')) === 1)

    // Another process looks for what is left behind.
    const other = await open()
    await other.batches.create([ask('c')])
    finish()

    const { id } = await creating
    for await (const batch of llm.batches.watch(id))
      if (batch.status === 'ended') expect(batch.counts.succeeded).toBe(2)
    expect((await llm.batches.list()).batches).toHaveLength(2)
  })

  test('the items of a killed process run in another one', async () => {
    const first = await open({ batches: { run: false } })
    const { id } = await first.batches.create([ask('a'), ask('b')])
    await database.query("INSERT INTO modelmount_batch_workers (id, expires_at) VALUES ('killed', ?)", [
      Date.now() + 1_500,
    ])
    await database.query("UPDATE modelmount_batch_items SET status = 'running', worker = 'killed'")

    const llm = await open()

    for await (const batch of llm.batches.watch(id))
      if (batch.status === 'ended') expect(batch.counts).toMatchObject({ succeeded: 2 })
    const [worker] = await database.query<{ expires_at: number }>(
      "SELECT expires_at FROM modelmount_batch_workers WHERE id = 'killed'",
    )
    expect((await llm.batches.get(id)).endedAt?.getTime()).toBeGreaterThanOrEqual(worker?.expires_at ?? 0)
  })

  test('several apps share the items of a batch, and run each one once', async () => {
    const engines = Array.from({ length: 3 }, () => scriptedEngine('one two'))
    const llms: Llm[] = []
    let startAll: () => void = () => {}
    const allStarted = new Promise<void>((resolve) => {
      startAll = resolve
    })
    const started = new Set<number>()
    for (const [index, engine] of engines.entries()) {
      // No item ends before each app has begun one.
      const waiting: Engine = {
        ...engine,
        async *generate(...given) {
          started.add(index)
          if (started.size === engines.length) startAll()
          await allStarted
          yield* engine.generate(...given)
        },
      }
      llms.push(await open({ engine: waiting, batches: { concurrency: 2 } }))
    }
    const [first] = llms as [Llm]
    const ids = Array.from({ length: 60 }, (_, index) => `item-${index}`)

    const { id } = await first.batches.create(ids.map(ask))
    for await (const _ of first.batches.watch(id));

    const requests = engines.map((engine) => engine.requests.length)
    expect(requests.reduce((sum, one) => sum + one, 0)).toBe(60)
    expect(Math.min(...requests)).toBeGreaterThan(0)
    expect(await first.usage.calls({ limit: 1_000 })).toHaveLength(60)
  })
})
