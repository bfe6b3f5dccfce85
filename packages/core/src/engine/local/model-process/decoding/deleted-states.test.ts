/** KV states of one tenant that are deleted while sequences decode, and while none does. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { fakeDecoder, job, prompt } from '../../../../../../../test/support/fake-decoder.ts'
import { SnapshotStore } from '../kv-cache/snapshots.ts'
import { Scheduler } from './scheduler.ts'

function createScheduler(): { readonly scheduler: Scheduler; readonly folder: string } {
  const folder = mkdtempSync(join(tmpdir(), 'deleted-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const scheduler = new Scheduler(fakeDecoder(), { steps: 0 }, new SnapshotStore(folder, 1_000_000))
  return { scheduler, folder }
}

const breakpoints = [{ length: 40, lifetime: '5m' }] as const

async function reused(scheduler: Scheduler, tenant: string): Promise<number | undefined> {
  const again = job(prompt(60), { tenant })
  await scheduler.run(again)
  await scheduler.whenIdle()
  return again.reused
}

test('deletes the slot and the file of a tenant, and nothing of another one', async () => {
  const { scheduler, folder } = createScheduler()
  for (const tenant of ['ann', 'ben']) await scheduler.run(job(prompt(60), { tenant, breakpoints }))
  await scheduler.whenIdle()
  expect(readdirSync(folder)).toHaveLength(2)

  expect(await scheduler.deleteStates('ann')).toBe(2)

  expect(readdirSync(folder)).toHaveLength(1)
  expect(await reused(scheduler, 'ann')).toBe(0)
  expect(await reused(scheduler, 'ben')).toBeGreaterThan(40)
  await scheduler.deleteStates('ann')
  expect(await scheduler.deleteStates('ann')).toBe(0)
})

test('a running sequence of the tenant continues, and its slot is deleted afterwards', async () => {
  const { scheduler } = createScheduler()
  let deleting: Promise<number> | undefined
  const onToken = (): boolean => {
    deleting ??= scheduler.deleteStates('ann')
    return true
  }

  expect(await scheduler.run(job(prompt(60), { maxTokens: 20, onToken }))).toBe('limit')

  expect(await deleting).toBe(0)
  expect(await scheduler.deleteStates('ann')).toBe(1)
})

test('the slot of a job that was aborted just before is deleted', async () => {
  const { scheduler } = createScheduler()
  const aborting = new AbortController()
  let deleting: Promise<number> | undefined
  const onToken = (): boolean => {
    aborting.abort()
    deleting ??= scheduler.deleteStates('ann')
    return true
  }

  expect(await scheduler.run(job(prompt(60), { maxTokens: 20, onToken, signal: aborting.signal }))).toBe(
    'aborted',
  )

  expect(await deleting).toBe(1)
})
