/** KV states that are saved while other sequences decode. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { fakeDecoder, job, prompt } from '../../../../../../../test/support/fake-decoder.ts'
import { SnapshotStore } from '../kv-cache/snapshots.ts'
import type { GenerationJob } from '../runner.ts'
import { Scheduler } from './scheduler.ts'

const streamCount = 4

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'saving-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** Four streams in the first slots, and prompts in the others. */
function createWorld(options: Parameters<typeof fakeDecoder>[0] = {}) {
  const decoder = fakeDecoder({ sequenceCount: streamCount + 4, ...options })
  const progress = { steps: 0 }
  const all = new Scheduler(decoder, progress, new SnapshotStore(folder, 1_000_000))
  /** Decode steps with the streams that are in them, saves and loads, in order. */
  const order: ('save' | 'load' | readonly number[])[] = []
  /** Values of the step counter after each save. */
  const counted: number[] = []
  const { decode, save, load } = decoder
  decoder.decode = (entries) => {
    order.push(entries.filter(({ tokens }) => tokens.length === 1).map(({ sequence }) => sequence))
    return decode(entries)
  }
  decoder.save = async (...given) => {
    order.push('save')
    const written = await save(...given)
    counted.push(progress.steps)
    return written
  }
  decoder.load = (...given) => {
    order.push('load')
    return load(...given)
  }
  const leaving = new AbortController()
  const run = (more: Partial<GenerationJob> & Pick<GenerationJob, 'prompt'>) =>
    all.run(job(more.prompt, more))
  return {
    decoder,
    progress,
    order,
    counted,
    run,
    /** Runs four endless streams while the callback runs. */
    async beside(callback: () => Promise<unknown>): Promise<void> {
      const { signal } = leaving
      let startedCount = 0
      let onStarted = (): void => {}
      const started = new Promise<void>((resolve) => {
        onStarted = resolve
      })
      const streams = Array.from({ length: streamCount }, (_, index) =>
        run({
          prompt: prompt(3, 1_000 * (index + 1)),
          tenant: 'streams',
          maxTokens: 1_000_000,
          signal,
          onToken: () => {
            if (++startedCount === streamCount) onStarted()
            return true
          },
        }),
      )
      await started
      order.length = 0
      await callback()
      leaving.abort()
      await Promise.all(streams)
      await all.whenIdle()
    },
  }
}

/** The greatest number of saves and loads between two steps of one stream. */
function longestRun(order: readonly ('save' | 'load' | readonly number[])[]): number {
  let longest = 0
  for (let stream = 0; stream < streamCount; stream++) {
    let count = 0
    for (const one of order) {
      count = typeof one === 'string' ? count + 1 : one.includes(stream) ? 0 : count
      longest = Math.max(longest, count)
    }
  }
  return longest
}

test('streams decode between the saves of prompts that reach their breakpoints in one step', async () => {
  const { order, run, beside } = createWorld()

  await beside(() =>
    Promise.all(
      [0, 1, 2, 3].map((index) =>
        run({
          prompt: prompt(12, 100 * index),
          tenant: `tenant ${index}`,
          breakpoints: [{ length: 9, lifetime: '5m' }],
        }),
      ),
    ),
  )

  expect(order.filter((one) => one === 'save')).toHaveLength(4)
  expect(longestRun(order)).toBe(1)
})

type Run = ReturnType<typeof createWorld>['run']

/** Asks four prompts of this length at once. */
const askFour = (run: Run, tenant: string, length: number) =>
  Promise.all(
    [0, 1, 2, 3].map((index) => run({ prompt: prompt(length, 100 * index), tenant, maxTokens: 20 })),
  )

test('streams decode between the saves of states that other prompts displace', async () => {
  const { order, run, beside } = createWorld()
  await beside(async () => {
    await askFour(run, 'ann', 60)
    order.length = 0
    await askFour(run, 'ben', 5)
  })

  expect(order.filter((one) => one === 'save')).toHaveLength(4)
  expect(longestRun(order)).toBe(1)
})

test('streams decode between the loads of saved states', async () => {
  const { order, run, beside } = createWorld()
  await beside(async () => {
    await askFour(run, 'ann', 60)
    await askFour(run, 'ben', 5)
    order.length = 0
    await askFour(run, 'ann', 60)
  })

  expect(order.filter((one) => one === 'load')).toHaveLength(4)
  expect(longestRun(order)).toBe(1)
})

test('streams decode between the save of a displaced state and the load of the state that replaces it', async () => {
  const { order, run, beside } = createWorld()
  await beside(async () => {
    await askFour(run, 'ann', 60)
    await askFour(run, 'ben', 60)
    order.length = 0
    await askFour(run, 'ann', 60)
  })

  expect(order.filter((one) => one === 'save')).toHaveLength(4)
  expect(order.filter((one) => one === 'load')).toHaveLength(4)
  expect(longestRun(order)).toBe(1)
})

test('without streams, a prompt does not wait for other saves than its own', async () => {
  const { decoder, order, run } = createWorld()
  const breakpoints = [{ length: 9, lifetime: '5m' }] as const

  await Promise.all(
    [0, 1].map((index) => run({ prompt: prompt(40, 100 * index), breakpoints, maxTokens: 1 })),
  )

  expect(order.filter((one) => one === 'save')).toHaveLength(2)
  // Each token is evaluated once.
  expect(decoder.steps.flat().reduce((sum, [, , count]) => sum + count, 0)).toBe(2 * 40)
})

test('each save counts as progress', async () => {
  const { counted, progress, run } = createWorld({ sequenceCount: 1 })
  const breakpoints = [16, 24].map((length) => ({ length, lifetime: '5m' }) as const)

  await run({ prompt: prompt(40), breakpoints, maxTokens: 1 })

  expect(counted).toHaveLength(2)
  // Pieces of 16, 8 and 16 tokens, and two saves.
  expect(progress.steps).toBe(3 + 2)
})
