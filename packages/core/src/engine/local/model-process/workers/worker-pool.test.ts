import { expect, test, vi } from 'vitest'
import { budgetOf } from '../../../../../../../test/support/budgets.ts'
import { LlmError } from '../../../../errors.ts'
import { type CpuBudget, TenantCpu } from './cpu-budget.ts'
import type { CpuMeter } from './cpu-meter.ts'
import { type PoolWorker, WorkerPool } from './worker-pool.ts'

interface FakeJob {
  readonly name: string
  /** Whether the job runs until the test ends it. */
  readonly isEndless?: boolean
}

const quickMs = 50
const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A pool for one quick and one slow job at a time, whose workers record what they run. */
function fakePool() {
  const log: string[] = []
  const ends = new Map<string, () => void>()
  let created = 0
  class FakeWorker implements PoolWorker<FakeJob, string> {
    #stop = (): void => {}
    run({ name, isEndless = false }: FakeJob, _signal: AbortSignal, meter: CpuMeter): Promise<string> {
      log.push(name)
      meter.start({ cpuMs: 0 })
      return new Promise((resolve, reject) => {
        this.#stop = () => reject(new LlmError('internal', 'stopped'))
        ends.set(name, () => resolve(name))
        if (!isEndless) setImmediate(() => resolve(name))
      })
    }
    restart(): void {
      log.push('restart')
      this.#stop()
    }
  }
  const pool = new WorkerPool<FakeJob, string>(
    () => {
      created++
      return new FakeWorker()
    },
    { concurrency: 1, quickMs },
  )
  const tenants = new TenantCpu()
  const budgetFor = (tenant: string, background = false): CpuBudget =>
    budgetOf({ tenant, background }, tenants)
  return { pool, log, ends, tenants, budgetFor, created: () => created }
}

test('one worker serves quick jobs, however many', async () => {
  const { pool, budgetFor, created } = fakePool()

  const results = await Promise.all(
    Array.from({ length: 20 }, (_, index) => pool.run({ name: `${index}` }, budgetFor('ann'))),
  )

  expect(results).toEqual(Array.from({ length: 20 }, (_, index) => `${index}`))
  expect(created()).toBe(1)
})

test('tenants take turns by their CPU time, and background calls come last', async () => {
  const { pool, log, tenants, budgetFor } = fakePool()
  tenants.charge('heavy', 5_000)
  tenants.charge('light', 10)

  await Promise.all([
    pool.run({ name: 'first' }, budgetFor('first')),
    ...['a', 'b'].map((name) => pool.run({ name: `heavy ${name}` }, budgetFor('heavy'))),
    pool.run({ name: 'background' }, budgetFor('new', true)),
    pool.run({ name: 'light' }, budgetFor('light')),
    pool.run({ name: 'new' }, budgetFor('new')),
  ])

  expect(log).toEqual(['first', 'new', 'light', 'heavy a', 'heavy b', 'background'])
})

test('a slow job makes room for quick ones without a restart, and the other jobs of its tenant wait for it', async () => {
  const { pool, log, ends, budgetFor } = fakePool()
  const slow = pool.run({ name: 'slow', isEndless: true }, budgetFor('greedy'))
  const later = pool.run({ name: 'later' }, budgetFor('greedy'))

  expect(await pool.run({ name: 'polite' }, budgetFor('ann'))).toBe('polite')
  expect(await pool.run({ name: 'again' }, budgetFor('ann'))).toBe('again')
  expect(log).toEqual(['slow', 'polite', 'again'])

  ends.get('slow')?.()
  expect(await slow).toBe('slow')
  expect(await later).toBe('later')
})

test('a second slow job is stopped, and runs again after the first', async () => {
  const { pool, log, ends, budgetFor } = fakePool()
  const first = pool.run({ name: 'first', isEndless: true }, budgetFor('greedy'))
  const second = pool.run({ name: 'second', isEndless: true }, budgetFor('hostile'))

  expect(await pool.run({ name: 'polite' }, budgetFor('ann'))).toBe('polite')
  expect(log).toEqual(['first', 'second', 'restart', 'polite'])

  ends.get('first')?.()
  await first
  await tick()
  ends.get('second')?.()
  expect(await second).toBe('second')
  expect(log.at(-1)).toBe('second')
})

test('while a tenant rests, its jobs run as quick ones only, and a slow one waits for longer', async () => {
  const { pool, log, ends, tenants, budgetFor } = fakePool()
  tenants.startAnswer('polite')
  tenants.charge('greedy', 10_000)
  vi.spyOn(tenants, 'mustRest').mockImplementation((tenant, _weight, isSlow) => tenant === 'greedy' && isSlow)

  expect(await pool.run({ name: 'chat' }, budgetFor('greedy'))).toBe('chat')
  const slow = pool.run({ name: 'slow', isEndless: true }, budgetFor('greedy'))
  expect(await pool.run({ name: 'polite' }, budgetFor('ann'))).toBe('polite')
  expect(log).toEqual(['chat', 'slow', 'restart', 'polite'])

  vi.mocked(tenants.mustRest).mockReturnValue(false)
  expect(await pool.run({ name: 'again' }, budgetFor('ann'))).toBe('again')
  await tick()
  ends.get('slow')?.()
  expect(await slow).toBe('slow')
})

test('a burst of calls reads the CPU time of tenants only when a worker is free', async () => {
  const { pool, ends, tenants, budgetFor } = fakePool()
  void pool.run({ name: 'slow', isEndless: true }, budgetFor('slow'))
  await pool.run({ name: 'polite' }, budgetFor('ann'))
  const running = pool.run({ name: 'quick', isEndless: true }, budgetFor('ann'))
  await tick()
  const reads = [vi.spyOn(tenants, 'isSlow'), vi.spyOn(tenants, 'recentMs')]

  const burst = Array.from({ length: 100 }, (_, index) => pool.run({ name: 'one' }, budgetFor(`${index}`)))

  expect(reads.flatMap((spy) => spy.mock.calls)).toEqual([])
  ends.get('quick')?.()
  ends.get('slow')?.()
  await Promise.all([running, ...burst])
})

test('an aborted call leaves the queue', async () => {
  const { pool, log, ends, budgetFor } = fakePool()
  const call = new AbortController()
  const first = pool.run({ name: 'first', isEndless: true }, budgetFor('ann'))
  const aborted = pool.run({ name: 'aborted' }, budgetOf({ signal: call.signal }))
  call.abort()

  expect(await aborted).toBeUndefined()
  ends.get('first')?.()
  await first
  expect(log).toEqual(['first'])
})

test.each([
  ['as long as the call has CPU time left', {}, 1_000],
  ['no longer than the limit of the pool', { maxJobMs: 300 }, 300],
])('a job may run for %s', async (_limit, options, expected) => {
  const limits: number[] = []
  const worker: PoolWorker<string, string> = {
    run: async (job, _signal, meter) => {
      limits.push(meter.remainingMs)
      return job
    },
    restart: () => {},
  }
  const pool = new WorkerPool(() => worker, options)
  const budget = budgetOf()
  budget.charge(9_000)

  await pool.run('job', budget)

  expect(limits).toEqual([expected])
})

test('a call without CPU time left is rejected without a worker', async () => {
  const { pool, log, budgetFor } = fakePool()
  const spent = budgetFor('ann')
  spent.charge(10_000)

  await expect(pool.run({ name: 'late' }, spent)).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringContaining('10 s of CPU time for each call'),
  })
  expect(log).toEqual([])
})

test('the CPU time of a job counts towards its call, also if the job fails', async () => {
  const worker: PoolWorker<string, string> = {
    run: async (job, _signal, meter) => {
      meter.stop(700)
      if (job === 'bad') throw new LlmError('internal', 'bad')
      return job
    },
    restart: () => {},
  }
  const pool = new WorkerPool(() => worker)
  const budget = budgetOf()

  await pool.run('good', budget)
  await expect(pool.run('bad', budget)).rejects.toMatchObject({ code: 'internal' })

  expect(budget.remainingMs).toBe(8_600)
})

test('a job that waits for its worker, or for a core, is not slow', async () => {
  const tenants = new TenantCpu()
  const worker: PoolWorker<string, string> = {
    run: async (job, _signal, meter) => {
      await new Promise((resolve) => setTimeout(resolve, 3 * quickMs))
      if (job === 'starved') {
        meter.start({ thread: 'gone', cpuMs: 0 })
        meter.stop(1)
      }
      return job
    },
    restart: () => {},
  }
  const pool = new WorkerPool(() => worker, { quickMs })

  await pool.run('waiting', budgetOf({ tenant: 'ann' }, tenants))
  await pool.run('starved', budgetOf({ tenant: 'ann' }, tenants))

  expect(tenants.isSlow('ann')).toBe(false)
})
