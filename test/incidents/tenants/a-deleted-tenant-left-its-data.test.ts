/**
 * Data of a customer who had left stayed: keys, usage rows and cached prompts could be deleted only by hand, and not
 * in model processes.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { type Caller, createLlm, type Llm } from '@modelmount/core'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { openDatabase } from '../../../packages/core/src/storage/open.ts'
import { databases } from '../../support/databases.ts'
import { emptyFolder } from '../../support/empty-folder.ts'
import { noiseModel } from '../../support/models.ts'
import '../../support/own-run-folder.ts'

const model = 'tiny-llama-spm.f16'
const prompt = 'A text of a customer who leaves soon. '.repeat(40)
const left: Caller = { id: 'user', tenant: 'left' }
const stays: Caller = { id: 'other', tenant: 'stays' }
const script = fileURLToPath(new URL('delete-tenant.mjs', import.meta.url))

/** @param contextSize apps with different sizes have different model processes */
async function open(database: string, contextSize = 4_096): Promise<Llm> {
  const local = { contextSize, parallel: 2 }
  const llm = await createLlm({ models: noiseModel, auth: 'host', database, local })
  onTestFinished(() => llm.close())
  return llm
}

const start = (llm: Llm, caller: Caller, maxTokens: number) =>
  llm.generate(
    {
      ...{ model, maxTokens },
      input: { kind: 'text', prompt: [prompt], template: false },
      sampling: { temperature: 1, ignoreEos: true },
    },
    { signal: new AbortController().signal, caller },
  )

/** Returns how many tokens of the prompt were reused. */
async function ask(llm: Llm, caller: Caller): Promise<number> {
  let reused = 0
  for await (const event of await start(llm, caller, 1))
    if (event.type === 'end') reused = event.usage.reusedTokens
  return reused
}

describe.each(databases())('with $name, deleting a tenant', ({ fresh }) => {
  test('deletes its prompt states, and not those of another tenant', async () => {
    const llm = await open(await fresh())
    for (const caller of [left, stays]) await ask(llm, caller)

    const { promptStates } = await llm.tenants.delete('left')

    expect(promptStates).toBeGreaterThan(0)
    expect(await ask(llm, left)).toBe(0)
    expect(await ask(llm, stays)).toBeGreaterThan(100)
  }, 120_000)

  test('ends its calls in another app within 10 s, and deletes the prompt states of its model process', async () => {
    const database = await fresh()
    const [one, two] = [await open(database), await open(database, 3_072)]
    await ask(two, left)
    await ask(two, stays)
    // Its reader is slow, so that the answer is not over before the end of the call.
    const answer = (await start(two, left, 2_000))[Symbol.asyncIterator]()
    await answer.next()

    const deletedAt = performance.now()
    await one.tenants.delete('left')

    await vi.waitFor(() => expect(answer.next()).rejects.toMatchObject({ code: 'permission' }), {
      timeout: 10_000,
      interval: 100,
    })
    await vi.waitFor(async () => expect(await one.usage.calls()).toMatchObject([{ caller: 'other' }]), {
      timeout: 10_000,
      interval: 100,
    })
    expect(await one.usage.report({ by: 'tenant' })).toMatchObject([{ group: 'stays' }])
    expect(await ask(two, left)).toBe(0)
    expect(performance.now() - deletedAt).toBeLessThan(10_000)
    expect(await ask(two, stays)).toBeGreaterThan(100)
  }, 120_000)

  test('deletes the rest after a kill -9 in the middle', async () => {
    const location = await fresh()
    const llm = await createLlm({ models: emptyFolder(), auth: 'host', database: location })
    onTestFinished(() => llm.close())
    await llm.keys.create({ name: 'of the tenant', tenant: 'left' })
    await llm.keys.create({ name: 'of another', tenant: 'stays' })
    const calls = 50_000
    const database = await openDatabase(location)
    onTestFinished(() => database.close())
    await database.query(
      `INSERT INTO modelmount_calls (id, at, caller, tenant, model, input_tokens, cached_input_tokens,
         cache_write_tokens, output_tokens, nano_usd, priced, status, duration_ms)
       WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${calls})
       SELECT 'call ' || n, 1, 'user', 'left', 'tiny', 0, 0, 0, 0, 0, 0, 'ended', 0 FROM numbers`,
    )
    const count = async (): Promise<number> => {
      const [row] = await database.query<{ left: number }>('SELECT count(*) AS left FROM modelmount_calls')
      return row?.left ?? 0
    }
    const deleting = spawn(process.execPath, [script, location], { stdio: ['ignore', 'pipe', 'inherit'] })
    onTestFinished(() => void deleting.kill('SIGKILL'))
    await once(deleting.stdout, 'data')
    while (deleting.exitCode === null && (await count()) === calls);
    deleting.kill('SIGKILL')
    await once(deleting, 'exit')
    const remaining = await count()
    expect(remaining).toBeGreaterThan(0)
    const statuses = async () =>
      (await llm.keys.list()).map(({ name, status }) => `${name}: ${status}`).sort()
    expect(await statuses()).toEqual(['of another: active', 'of the tenant: revoked'])

    const { revokedKeys, deleted } = await llm.tenants.delete('left')

    expect(deleted).toMatchObject({ keys: 1 })
    expect(revokedKeys).toBe(0)
    // PostgreSQL may have ended the last batch of the killed process after the count.
    expect([remaining, remaining - 200]).toContain(deleted.calls)
    expect(await count()).toBe(0)
    expect(await statuses()).toEqual(['of another: active'])
  }, 120_000)
})
