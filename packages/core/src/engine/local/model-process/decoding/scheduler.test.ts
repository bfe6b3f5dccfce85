import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import type { Token } from 'node-llama-cpp'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { fakeDecoder, job, prompt, type Recorded } from '../../../../../../../test/support/fake-decoder.ts'
import type { Breakpoint } from '../kv-cache/cache-plan.ts'
import { SnapshotStore } from '../kv-cache/snapshots.ts'
import type { GenerationJob } from '../runner.ts'
import type { BatchEntry, Decoder } from './decoder.ts'
import { Scheduler } from './scheduler.ts'

const scheduler = (decoder: Decoder): Scheduler => new Scheduler(decoder, { steps: 0 })

test('a prompt is evaluated in chunks, then one token after the other is sampled', async () => {
  const decoder = fakeDecoder({ chunksAtOnce: 1 })
  const one = job(prompt(20))

  expect(await scheduler(decoder).run(one)).toBe('limit')

  expect(one.tokens).toEqual([1, 2, 3])
  expect(decoder.steps).toEqual([[[0, 0, 8]], [[0, 8, 8]], [[0, 16, 4]], [[0, 20, 1]], [[0, 21, 1]]])
  expect(decoder.samplers).toBe(0)
})

test('a lone sequence evaluates two chunks at once, and never few rows unless its prompt is short', async () => {
  const piecesOf = async (length: number): Promise<readonly number[]> => {
    const decoder = fakeDecoder()
    await scheduler(decoder).run(job(prompt(length), { maxTokens: 1 }))
    return decoder.steps.map(([[, , count] = [0, 0, 0]]) => count)
  }

  expect(await piecesOf(5)).toEqual([5])
  expect(await piecesOf(13)).toEqual([13])
  expect(await piecesOf(16)).toEqual([16])
  expect(await piecesOf(17)).toEqual([8, 9])
  expect(await piecesOf(24)).toEqual([16, 8])
  expect(await piecesOf(45)).toEqual([16, 16, 13])
})

test('two chunks that are evaluated at once count as whole chunks for a deterministic output', async () => {
  const decoder = fakeDecoder()
  const all = scheduler(decoder)
  await all.run(job(prompt(45), { maxTokens: 1 }))
  decoder.steps.length = 0
  const seeded = job(prompt(46), { isDeterministic: true, maxTokens: 1 })

  await all.run(seeded)

  expect(seeded.reused).toBe(40)
  expect(decoder.steps).toEqual([[[0, 40, 6]]])
})

describe('a prompt that a running sequence shares', () => {
  /** Runs a second job when the first one has its first token, and resolves with that job. */
  async function runBeside(
    decoder: Decoder,
    more: Partial<GenerationJob> = {},
    first: Partial<GenerationJob> = {},
    all = scheduler(decoder),
  ): Promise<GenerationJob & Recorded> {
    const second = job(prompt(40), more)
    let running: Promise<unknown> | undefined
    const onToken = () => {
      running ??= all.run(second)
      return true
    }
    await all.run(job(prompt(40), { maxTokens: 6, onToken, ...first }))
    await running
    return second
  }

  test('is copied instead of evaluated again', async () => {
    const decoder = fakeDecoder({ minCopyLength: 8 })

    const second = await runBeside(decoder)

    expect(second).toMatchObject({ reused: 39, tokens: [1, 2, 3] })
    expect(decoder.steps.flat().filter(([sequence]) => sequence === 1)[0]).toEqual([1, 39, 1])
    expect(decoder.samplers).toBe(0)
  })

  test('is copied up to its last whole chunk for a deterministic output', async () => {
    const second = await runBeside(fakeDecoder({ minCopyLength: 8 }), { isDeterministic: true })

    expect(second).toMatchObject({ reused: 32, tokens: [1, 2, 3] })
  })

  test.each<[why: string, more: Partial<GenerationJob>, minCopyLength: number]>([
    ['if it belongs to another tenant', { tenant: 'bob' }, 8],
    ['if it is too short', {}, 40],
    ['before a breakpoint', { breakpoints: [{ length: 39, lifetime: '5m' }] }, 8],
    ['with logprobs of the prompt', { onPromptLogprobs: () => {} }, 8],
  ])('is not copied %s', async (_why, more, minCopyLength) => {
    expect(await runBeside(fakeDecoder({ minCopyLength }), more)).toMatchObject({
      reused: 0,
      tokens: [1, 2, 3],
    })
  })

  test('is forgotten if the job is aborted before its first step, and its slot is used later', async () => {
    const decoder = fakeDecoder({ minCopyLength: 8, sequenceCount: 2 })
    const all = scheduler(decoder)
    const aborted = new AbortController()
    const later = job(prompt(20, 500), { tenant: 'bob' })
    const runs: Promise<unknown>[] = []

    await runBeside(
      decoder,
      {
        signal: aborted.signal,
        onStart: () => {
          aborted.abort()
          runs.push(all.run(later))
        },
      },
      { maxTokens: 12 },
      all,
    )
    await Promise.all(runs)

    expect(later).toMatchObject({ reused: 0, tokens: [501, 502, 503] })
    expect(decoder.samplers).toBe(0)
  })
})

test('a job that arrives when the last one ends is run', async () => {
  const decoder = fakeDecoder()
  const progress = { steps: 0 }
  const all = new Scheduler(decoder, progress)

  await all.run(job(prompt(3)))
  await all.run(job(prompt(3)))

  // A pause would increase the step count.
  expect(progress.steps).toBe(decoder.steps.length)
})

test('the end token is not emitted', async () => {
  const one = job(prompt(3, 996))

  expect(await scheduler(fakeDecoder()).run(one)).toBe('end')

  expect(one.tokens).toEqual([997, 998])
})

test('a stopped job gets no more tokens', async () => {
  const decoder = fakeDecoder()
  const emitted: Token[] = []
  const onToken = (token: Token): boolean => emitted.push(token) < 2
  const all = scheduler(decoder)

  expect(await all.run(job(prompt(3), { maxTokens: 50, onToken }))).toBe('stopped')
  await all.whenIdle()

  expect(emitted).toEqual([1, 2])
  expect(decoder.samplers).toBe(0)
})

test('several sequences decode in one batch, and short prompts share a chunk', async () => {
  const decoder = fakeDecoder()
  const all = scheduler(decoder)
  const jobs = [job(prompt(3)), job(prompt(4, 100)), job(prompt(5, 200))]

  await Promise.all(jobs.map((one) => all.run(one)))

  expect(jobs.map(({ tokens }) => tokens)).toEqual([
    [1, 2, 3],
    [101, 102, 103],
    [201, 202, 203],
  ])
  expect(decoder.steps[0]).toEqual([
    [0, 0, 3],
    [1, 0, 4],
    [2, 0, 5],
  ])
})

test('a step combines a chunk of one long prompt with short prompts', async () => {
  const decoder = fakeDecoder()
  const all = scheduler(decoder)

  await Promise.all([20, 20, 5, 5].map((length) => all.run(job(prompt(length)))))

  expect(decoder.steps[0]).toEqual([
    [0, 0, 8],
    [2, 0, 5],
  ])
})

test('a long prompt does not block decoding: a decode step follows each of its chunks but the last two', async () => {
  const decoder = fakeDecoder()
  const all = scheduler(decoder)
  let long: Promise<unknown> | undefined
  const onToken = (): boolean => {
    long ??= all.run(job(prompt(80, 300)))
    return true
  }

  await all.run(job(prompt(3), { maxTokens: 12, onToken }))
  await long

  const order = decoder.steps.map(([[sequence, , count] = [0, 0, 0]]) =>
    count === 1 ? 'decode' : `prefill ${sequence}`,
  )
  const first = order.indexOf('prefill 1')
  expect(order.slice(first, first + 20)).toEqual([
    ...Array.from({ length: 8 }, () => ['prefill 1', 'decode']).flat(),
    ...['prefill 1', 'prefill 1', 'decode', 'decode'],
  ])
})

describe('short prompts that arrive together', () => {
  afterEach(() => vi.restoreAllMocks())

  /** @returns one entry per step: for decode steps, the number of sequences */
  async function stepsWith(stepMs: number): Promise<string[]> {
    let now = 10_000
    vi.spyOn(performance, 'now').mockImplementation(() => now)
    const decoder = fakeDecoder({ sequenceCount: 6 })
    const decode = decoder.decode
    const timed = (pieces: readonly BatchEntry[]) => {
      now += stepMs
      return decode(pieces)
    }
    const all = scheduler(Object.assign(decoder, { decode: timed }))
    await Promise.all([0, 1, 2, 3, 4, 5].map((one) => all.run(job(prompt(8, one * 100)))))
    return decoder.steps.map((pieces) => (pieces[0]?.[2] === 1 ? `decode ${pieces.length}` : 'prefill'))
  }

  test('are all evaluated before the first of them continues decoding', async () => {
    expect((await stepsWith(600)).slice(0, 4)).toEqual(['prefill', 'prefill', 'prefill', 'decode 6'])
  })

  test('delay decoding for at most a second', async () => {
    expect((await stepsWith(1_100)).slice(0, 4)).toEqual(['prefill', 'prefill', 'decode 4', 'prefill'])
  })
})

test('an aborted job is dropped before the next step, whether queued, in prefill or decoding', async () => {
  const decoder = fakeDecoder({ sequenceCount: 2 })
  const all = scheduler(decoder)
  const [decoding, prefilling, queued] = [1, 2, 3].map(() => new AbortController()) as [
    AbortController,
    AbortController,
    AbortController,
  ]
  let steps = 0
  const onToken = (): boolean => {
    for (const one of [decoding, prefilling, queued]) one.abort()
    steps = decoder.steps.length
    return true
  }

  const endings = await Promise.all([
    all.run(job(prompt(3), { maxTokens: 100, onToken, signal: decoding.signal })),
    all.run(job(prompt(400, 100), { signal: prefilling.signal })),
    all.run(job(prompt(3, 500), { signal: queued.signal })),
  ])
  await all.whenIdle()

  expect(endings).toEqual(['aborted', 'aborted', 'aborted'])
  // At most one more step runs after the abort.
  expect(decoder.steps.length - steps).toBeLessThanOrEqual(1)
  expect(decoder.samplers).toBe(0)
})

test('the last token is emitted even if all other jobs abort in its step', async () => {
  const controller = new AbortController()
  const decoder = fakeDecoder()
  const { decode } = decoder
  decoder.decode = async (pieces) => {
    const tokens = await decode(pieces)
    if (decoder.steps.length === 2) controller.abort()
    return tokens
  }
  const all = scheduler(decoder)
  const one = job(prompt(3), { maxTokens: 2 })

  const endings = await Promise.all([
    all.run(one),
    all.run(job(prompt(3, 100), { maxTokens: 50, signal: controller.signal })),
  ])

  expect(endings).toEqual(['limit', 'aborted'])
  expect(one.tokens).toEqual([1, 2])
})

test('if a job cannot start, only this job fails, and its slot is free again', async () => {
  const decoder = fakeDecoder({ sequenceCount: 1 })
  const { createSampler } = decoder
  let bad = true
  decoder.createSampler = (...parts) => {
    if (bad) throw new Error('a mistake')
    return createSampler(...parts)
  }
  const all = scheduler(decoder)

  await expect(all.run(job(prompt(30)))).rejects.toMatchObject({ code: 'internal' })
  bad = false

  expect(await all.run(job(prompt(30)))).toBe('limit')
})

test('tokens that are gone from the KV cache are evaluated again', async () => {
  const decoder = fakeDecoder()
  const { truncate } = decoder
  decoder.truncate = (sequence, keep) => truncate(sequence, keep) && keep === 0
  const all = scheduler(decoder)
  await all.run(job(prompt(30)))
  const again = job(prompt(30))

  expect(await all.run(again)).toBe('limit')

  expect(again.reused).toBe(0)
  expect(again.tokens).toEqual([1, 2, 3])
})

test('a prompt reuses the prefix that it shares with the last prompt', async () => {
  const decoder = fakeDecoder()
  const all = scheduler(decoder)
  await all.run(job(prompt(30)))

  const next = job(prompt(40))
  await all.run(next)

  expect(next.reused).toBe(30)
  expect(decoder.steps.find(([[, position, count] = [0, 0, 0]]) => position === 30 && count > 1)).toEqual([
    [0, 30, 10],
  ])
})

test('KV state of output is also reused, except for a deterministic job', async () => {
  const all = scheduler(fakeDecoder())
  await all.run(job(prompt(30)))
  const history = [...prompt(30), 1, 2, 700, 701] as Token[]
  const again = job(history)
  await all.run(again)
  const seeded = job(history, { isDeterministic: true })
  await all.run(seeded)

  expect(again.reused).toBe(32)
  expect(seeded.reused).toBe(24)
})

test('a deterministic job shares no step, which could change its output', async () => {
  const decoder = fakeDecoder()
  const all = scheduler(decoder)
  const jobs = [true, false, true, false].map((isDeterministic, index) =>
    job(prompt(2 + index, index * 100), { isDeterministic, maxTokens: 5 }),
  )

  await Promise.all(jobs.map((one) => all.run(one)))

  const shared = decoder.steps.filter(({ length }) => length > 1)
  expect(jobs.map(({ tokens }) => tokens.length)).toEqual([5, 5, 5, 5])
  expect(shared.length).toBeGreaterThan(0)
  expect(shared.flat().every(([sequence]) => sequence % 2 === 1)).toBe(true)
})

test('tenants share no KV state', async () => {
  const all = scheduler(fakeDecoder())
  await all.run(job(prompt(30)))
  const other = job(prompt(30), { tenant: 'ben' })

  await all.run(other)

  expect(other.reused).toBe(0)
})

test('the tenant with fewer running sequences is next', async () => {
  const all = scheduler(fakeDecoder({ sequenceCount: 2 }))
  const order: string[] = []
  const run = (tenant: string, first: number): Promise<unknown> =>
    all.run(job(prompt(3, first), { tenant, maxTokens: 5, onStart: () => order.push(`${tenant} ${first}`) }))

  await Promise.all([run('ann', 1), run('ann', 2), run('ann', 3), run('ben', 4)])

  expect(order).toEqual(['ann 1', 'ben 4', 'ann 2', 'ann 3'])
})

test('a failed step ends only the sequence that caused the failure', async () => {
  const decoder = fakeDecoder({
    failsAt: (pieces) => pieces.some(({ tokens }) => tokens.includes(666 as Token)),
  })
  const all = scheduler(decoder)
  const good = job(prompt(3))

  const [fine, bad] = await Promise.allSettled([all.run(good), all.run(job([666 as Token, 667 as Token]))])
  await all.whenIdle()

  expect(fine).toEqual({ status: 'fulfilled', value: 'limit' })
  expect(good.tokens).toEqual([1, 2, 3])
  expect(bad).toMatchObject({ status: 'rejected', reason: { code: 'upstream' } })
  expect(decoder.samplers).toBe(0)
})

test('if a token cannot be sampled, only its job fails', async () => {
  const decoder = fakeDecoder()
  const { decode } = decoder
  decoder.decode = async (pieces) =>
    (await decode(pieces)).map((samples, index) =>
      pieces[index]?.sequence === 1 ? [new Error('none fits')] : samples,
    )
  const all = scheduler(decoder)

  const [fine, bad] = await Promise.allSettled([all.run(job(prompt(3))), all.run(job(prompt(4, 100)))])

  expect(fine).toEqual({ status: 'fulfilled', value: 'limit' })
  expect(bad).toMatchObject({ status: 'rejected', reason: { code: 'upstream' } })
})

test('if a callback throws, only its job fails', async () => {
  const all = scheduler(fakeDecoder())
  const onToken = (): boolean => {
    throw new Error('a mistake')
  }

  const [fine, bad] = await Promise.allSettled([
    all.run(job(prompt(3))),
    all.run(job(prompt(4, 100), { onToken })),
  ])

  expect(fine).toEqual({ status: 'fulfilled', value: 'limit' })
  expect(bad).toMatchObject({ status: 'rejected', reason: { code: 'internal' } })
})

test('many jobs over few sequences all end, each with its own tokens', async () => {
  const decoder = fakeDecoder({ sequenceCount: 3 })
  const all = scheduler(decoder)
  const jobs = Array.from({ length: 50 }, (_, index) =>
    job(prompt(1 + ((index * 7) % 40), index), { maxTokens: 1 + (index % 6) }),
  )

  await Promise.all(jobs.map((one) => all.run(one)))
  await all.whenIdle()

  for (const [index, { tokens, maxTokens }] of jobs.entries())
    expect(tokens).toEqual(Array.from({ length: maxTokens }, (_, offset) => index + offset + 1))
  expect(decoder.samplers).toBe(0)
})

describe('a model that cannot truncate', () => {
  let folder: string

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'snapshots-'))
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  const withoutTruncation = (options: Parameters<typeof fakeDecoder>[0] = {}) => {
    const decoder = fakeDecoder({ isComplete: () => false, canTruncate: false, ...options })
    return { decoder, all: new Scheduler(decoder, { steps: 0 }, new SnapshotStore(folder, 1_000)) }
  }

  test('restores the snapshot of a prompt with the same prefix into any slot', async () => {
    const { all } = withoutTruncation()
    await all.run(job(prompt(30)))
    const again = job(prompt(30))
    await all.run(again)
    const next = job([...prompt(28), ...prompt(20, 500)])
    await all.run(next)

    // The snapshot ends at the last chunk that leaves enough tokens to evaluate.
    expect([again.reused, next.reused]).toEqual([16, 16])
    expect([again.tokens, next.tokens]).toEqual([
      [1, 2, 3],
      [1, 2, 3],
    ])
  })

  test('reuses all state of a slot if the next prompt continues it', async () => {
    const { decoder, all } = withoutTruncation()
    await all.run(job(prompt(30)))
    const next = job([...prompt(30), 1, 2, 700, 701] as Token[])

    await all.run(next)

    expect(next.reused).toBe(32)
    expect(decoder.steps.flat().filter(([, position]) => position === 32)).toEqual([[0, 32, 2]])
  })

  test('evaluates a deterministic prompt in the same chunks with and without cached state', async () => {
    const { decoder, all } = withoutTruncation()
    await all.run(job(prompt(30)))
    // The state now continues with output, so it is no longer the state of a prompt.
    await all.run(job([...prompt(30), 1, 2, ...prompt(20, 700)] as Token[]))
    decoder.steps.length = 0
    const seeded = job([...prompt(30), 1, 2, ...prompt(21, 700)] as Token[], {
      isDeterministic: true,
      maxTokens: 1,
    })

    await all.run(seeded)

    expect(seeded.reused).toBe(16)
    expect(decoder.steps.flat().map(([, position, count]) => [position, count])).toEqual(
      [16, 24, 32, 40, 48].map((position) => [position, Math.min(8, 53 - position)]),
    )
  })

  test('uses no snapshot for a deterministic prompt that would restore in another memory layout', async () => {
    const { all } = withoutTruncation({ windowSize: 16 })
    for (const length of [30, 60]) await all.run(job(prompt(length, length)))
    const [short, long] = [30, 60].map((length) => job(prompt(length, length), { isDeterministic: true }))
    for (const one of [short, long]) if (one) await all.run(one)

    expect([short?.reused, long?.reused]).toEqual([16, 0])
  })

  test('shares no snapshot between tenants', async () => {
    const { all } = withoutTruncation()
    await all.run(job(prompt(30)))
    const other = job(prompt(30), { tenant: 'ben' })

    await all.run(other)

    expect(other.reused).toBe(0)
  })

  test('evaluates the whole prompt if a snapshot file is damaged or cannot be loaded', async () => {
    const { decoder, all } = withoutTruncation()
    await all.run(job(prompt(30)))
    for (const name of readdirSync(folder)) await writeFile(join(folder, name), 'nonsense')
    const damaged = job(prompt(30))
    await all.run(damaged)
    decoder.load = () => Promise.reject(new Error('not mine'))
    const unloadable = job(prompt(30))
    await all.run(unloadable)

    expect([damaged.reused, unloadable.reused]).toEqual([0, 0])
    expect([damaged.tokens, unloadable.tokens]).toEqual([
      [1, 2, 3],
      [1, 2, 3],
    ])
  })

  test('gives the same output if no snapshot can be saved', async () => {
    const { all } = withoutTruncation({ save: () => Promise.reject(new Error('ENOSPC')) })
    await all.run(job(prompt(30)))
    const again = job(prompt(30))

    expect(await all.run(again)).toBe('limit')

    expect([again.reused, again.tokens]).toEqual([0, [1, 2, 3]])
  })

  test('runs jobs that arrive, and drops jobs that abort, while a snapshot is loaded', async () => {
    const controller = new AbortController()
    const late = job(prompt(3, 500))
    let lateEnd: Promise<unknown> | undefined
    const { decoder, all } = withoutTruncation()
    const { load } = decoder
    decoder.load = async (...parts) => {
      lateEnd = all.run(late)
      controller.abort()
      await setImmediate()
      return load(...parts)
    }
    await all.run(job(prompt(30)))

    expect(await all.run(job(prompt(30), { signal: controller.signal }))).toBe('aborted')
    await lateEnd
    await all.whenIdle()

    expect(late.tokens).toEqual([501, 502, 503])
    expect(decoder.samplers).toBe(0)
  })

  test('runs many jobs in few slots, each with its own tokens', async () => {
    const { decoder, all } = withoutTruncation({ sequenceCount: 3 })
    const jobs = Array.from({ length: 60 }, (_, index) =>
      job(prompt(20 + ((index * 7) % 30), (index % 5) * 100), {
        tenant: `${index % 2}`,
        maxTokens: 1 + (index % 4),
      }),
    )

    await Promise.all(jobs.map((one) => all.run(one)))
    await all.whenIdle()

    for (const {
      tokens,
      maxTokens,
      prompt: [first = 0],
    } of jobs)
      expect(tokens).toEqual(Array.from({ length: maxTokens }, (_, offset) => first + offset + 1))
    expect(jobs.filter(({ reused }) => reused).length).toBeGreaterThan(10)
    expect(decoder.samplers).toBe(0)
  })
})

/**
 * Creates a background job and a foreground job. The foreground job runs after two tokens of the background
 * job.
 */
function withAnother(
  all: Scheduler,
  tokens: number,
): { job: GenerationJob & Recorded; other: Promise<unknown>; one: GenerationJob & Recorded } {
  const one = job(prompt(3, 100), { maxTokens: 6 })
  let begin: (running: Promise<unknown>) => void = () => {}
  const other = new Promise((resolve) => {
    begin = resolve
  })
  const background: GenerationJob & Recorded = job(prompt(20), {
    background: true,
    maxTokens: tokens,
    onToken: (token) => {
      if (background.tokens.push(token) === 2) begin(all.run(one))
      return true
    },
  })
  return { job: background, other, one }
}

test('a background job pauses while a foreground job runs, and continues after it', async () => {
  const decoder = fakeDecoder()
  const all = scheduler(decoder)
  const { job: background, other, one } = withAnother(all, 8)

  await Promise.all([all.run(background), other])

  const order = decoder.steps.map((pieces) => pieces.map(([sequence]) => sequence).join())
  expect(order.slice(order.indexOf('1'), order.lastIndexOf('1') + 1)).toEqual(Array(6).fill('1'))
  expect(background.tokens).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  expect(one.tokens).toEqual([101, 102, 103, 104, 105, 106])
})

test('a background job gives up its slot, and emits no token twice after it resumes', async () => {
  const decoder = fakeDecoder({ sequenceCount: 1, chunksAtOnce: 1 })
  const all = scheduler(decoder)
  const { job: background, other, one } = withAnother(all, 8)
  let starts = 0
  const onStart = (): void => {
    starts++
  }

  const endings = await Promise.all([all.run({ ...background, onStart }), other])

  expect(endings).toEqual(['limit', 'limit'])
  expect(background.tokens).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  expect(one.tokens).toEqual([101, 102, 103, 104, 105, 106])
  expect([starts, decoder.samplers]).toEqual([1, 0])
  // After preemption, the output so far is evaluated with the prompt: three chunks.
  expect(
    decoder.steps.filter(([[, position, count] = [0, 0, 0]]) => position === 16 && count > 4),
  ).toHaveLength(1)
})

test('a deterministic background job keeps its slot, since preemption would change its output', async () => {
  const all = scheduler(fakeDecoder({ sequenceCount: 1 }))
  const { job: background, other } = withAnother(all, 8)
  const order: string[] = []

  await Promise.all([
    all.run({ ...background, isDeterministic: true }).then(() => order.push('background')),
    other.then(() => order.push('other')),
  ])

  expect(order).toEqual(['background', 'other'])
})

test('with a limit of 0, a prompt is evaluated and no token is sampled', async () => {
  const decoder = fakeDecoder()
  const one = job(prompt(20), { maxTokens: 0 })

  expect(await scheduler(decoder).run(one)).toBe('limit')

  expect(one.tokens).toEqual([])
  expect(decoder.steps.flat().map(([, , count]) => count)).toEqual([8, 12])
  expect(decoder.samplers).toBe(0)
})

describe('a prompt with logprobs', () => {
  /** A job whose prompt logprobs are recorded. The fake logprob of a token is its negative id. */
  function jobWithLogprobs(
    tokens: readonly Token[],
    more: Partial<GenerationJob> = {},
  ): GenerationJob & Recorded & { readonly logprobs: number[][] } {
    const logprobs: number[][] = []
    const onPromptLogprobs: GenerationJob['onPromptLogprobs'] = (all) =>
      logprobs.push(all.map(({ logprob }) => -logprob))
    return Object.assign(job(tokens, { onPromptLogprobs, ...more }), { logprobs })
  }

  test('is reported from its second token on, piece by piece, before the output', async () => {
    const decoder = fakeDecoder()
    const one = jobWithLogprobs(prompt(20))

    expect(await scheduler(decoder).run(one)).toBe('limit')

    expect(one.logprobs).toEqual([
      [1, 2, 3, 4, 5, 6, 7, 8],
      [9, 10, 11, 12, 13, 14, 15, 16],
      [17, 18, 19],
    ])
    expect(one.tokens).toEqual([1, 2, 3])
    expect(decoder.steps.slice(0, 3)).toEqual([[[0, 0, 8]], [[0, 8, 8]], [[0, 16, 4]]])
  })

  test('is reported without output if the limit is 0', async () => {
    const decoder = fakeDecoder()
    const [one, single] = [
      jobWithLogprobs(prompt(9), { maxTokens: 0 }),
      jobWithLogprobs(prompt(1), { maxTokens: 0 }),
    ]
    const all = scheduler(decoder)

    expect(await Promise.all([all.run(one), all.run(single)])).toEqual(['limit', 'limit'])

    expect([one.logprobs, single.logprobs]).toEqual([[[1, 2, 3, 4, 5, 6, 7, 8], []], [[]]])
    expect([one.tokens, single.tokens]).toEqual([[], []])
    expect(decoder.samplers).toBe(0)
  })

  test('is evaluated from its start despite cached state, and later prompts reuse its state', async () => {
    const all = scheduler(fakeDecoder({ sequenceCount: 1 }))
    await all.run(job(prompt(30)))
    const one = jobWithLogprobs(prompt(30), { maxTokens: 0 })
    await all.run(one)
    const next = job(prompt(40))
    await all.run(next)

    expect(one.reused).toBe(0)
    expect(one.logprobs.flat()).toHaveLength(29)
    expect(next.reused).toBe(30)
  })

  test('is evaluated in separate steps of at most 64 rows, and other sequences decode in between', async () => {
    const decoder = fakeDecoder({ chunkSize: 256 })
    const all = scheduler(decoder)
    let running: Promise<unknown> | undefined
    const one = jobWithLogprobs(prompt(200))
    const onToken = (): boolean => {
      running ??= all.run(one)
      return true
    }

    await all.run(job(prompt(3, 100), { maxTokens: 12, onToken }))
    await running

    const prefillSteps = decoder.steps.filter((pieces) => pieces.some(([, , count]) => count > 3))
    expect(prefillSteps).toEqual([[[1, 0, 64]], [[1, 64, 64]], [[1, 128, 64]], [[1, 192, 8]]])
    const order = decoder.steps.map((pieces) => (prefillSteps.includes(pieces) ? 'prefill' : 'decode'))
    expect(order.join()).toContain('prefill,decode,prefill,decode,prefill')
  })

  test('is evaluated again for a deterministic job, which takes larger chunks', async () => {
    const reusedAfter = async (chunkSize: number): Promise<number | undefined> => {
      const all = scheduler(fakeDecoder({ chunkSize, sequenceCount: 1 }))
      await all.run(jobWithLogprobs(prompt(300), { maxTokens: 0 }))
      const next = job(prompt(310), { isDeterministic: true })
      await all.run(next)
      return next.reused
    }

    expect([await reusedAfter(256), await reusedAfter(64)]).toEqual([0, 256])
  })

  test('fails without other jobs if a logprob is unknown', async () => {
    const decoder = fakeDecoder()
    const { decode } = decoder
    decoder.decode = async (pieces) =>
      (await decode(pieces)).map((samples, index) =>
        pieces[index]?.targets ? [new Error('no numbers')] : samples,
      )
    const all = scheduler(decoder)

    const [fine, bad] = await Promise.allSettled([
      all.run(job(prompt(3))),
      all.run(jobWithLogprobs(prompt(40, 100))),
    ])

    expect(fine).toEqual({ status: 'fulfilled', value: 'limit' })
    expect(bad).toMatchObject({ status: 'rejected', reason: { code: 'upstream' } })
  })

  test('keeps its slot once prefill has begun, since logprobs would be reported twice', async () => {
    const all = scheduler(fakeDecoder({ sequenceCount: 1 }))
    let other: Promise<unknown> | undefined
    const one = jobWithLogprobs(prompt(40), { background: true })
    const { onPromptLogprobs } = one

    await all.run({
      ...one,
      onPromptLogprobs: (logprobs) => {
        onPromptLogprobs?.(logprobs)
        other ??= all.run(job(prompt(3, 100)))
      },
    })
    await other

    expect(one.logprobs.flat()).toEqual(Array.from({ length: 39 }, (_, index) => index + 1))
  })

  test('loads no snapshot', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'snapshots-'))
    const decoder = fakeDecoder({ isComplete: () => false, canTruncate: false })
    const all = new Scheduler(decoder, { steps: 0 }, new SnapshotStore(folder, 1_000))
    await all.run(job(prompt(30)))
    const one = jobWithLogprobs(prompt(30))

    await all.run(one)

    expect(one.reused).toBe(0)
    expect(one.logprobs.flat()).toHaveLength(29)
    rmSync(folder, { recursive: true, force: true })
  })
})

describe('breakpoints', () => {
  let folder: string
  let clock: number

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'snapshots-'))
    clock = 1
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  const withSnapshots = (options: Parameters<typeof fakeDecoder>[0] = {}, budgetBytes = 10_000) => {
    const decoder = fakeDecoder(options)
    return {
      decoder,
      all: new Scheduler(decoder, { steps: 0 }, new SnapshotStore(folder, budgetBytes, { now: () => clock })),
    }
  }
  const at = (...lengths: readonly number[]): readonly Breakpoint[] =>
    lengths.map((length) => ({ length, lifetime: '5m' }))
  const usageOf = ({ cached }: Recorded): readonly (number | undefined)[] => [
    cached?.reusedTokens,
    cached?.cacheReadTokens,
    cached?.cacheWriteTokens['5m'],
    cached?.cacheWriteTokens['1h'],
  ]
  /** Runs jobs one after the other, and returns the cache usage of each. */
  async function run(all: Scheduler, ...jobs: readonly (GenerationJob & Recorded)[]) {
    for (const one of jobs) await all.run(one)
    return jobs.map(usageOf)
  }

  test('are cached by the first call and reused by the next, in any slot', async () => {
    const { decoder, all } = withSnapshots({ sequenceCount: 1 })
    const other = job(prompt(20, 500))

    expect(
      await run(
        all,
        job(prompt(30), { breakpoints: at(19) }),
        other,
        job([...prompt(25), ...prompt(9, 900)], { breakpoints: at(19) }),
      ),
    ).toEqual([
      [0, 0, 19, 0],
      [0, 0, 0, 0],
      [19, 19, 0, 0],
    ])
    expect(decoder.steps.flat().filter(([, position]) => position === 19)).toHaveLength(2)
  })

  test('end a piece of the prompt, and the next piece ends at a chunk boundary', async () => {
    const { decoder, all } = withSnapshots({ chunksAtOnce: 1 })

    await run(all, job(prompt(40), { breakpoints: at(19, 24, 30), maxTokens: 1 }))

    expect(decoder.steps.flat().map(([, position, count]) => [position, count])).toEqual([
      [0, 8],
      [8, 8],
      [16, 3],
      [19, 5],
      [24, 6],
      [30, 2],
      [32, 8],
    ])
  })

  test('are counted by lifetime', async () => {
    const { all } = withSnapshots()
    const hour: Breakpoint = { length: 16, lifetime: '1h' }

    expect(
      await run(
        all,
        job(prompt(60), { breakpoints: [hour, ...at(30, 40)] }),
        job(prompt(60), { breakpoints: [hour, ...at(30, 50)] }),
      ),
    ).toEqual([
      [0, 0, 24, 16],
      [50, 40, 10, 0],
    ])
    clock += 6 * 60_000
    expect(await run(all, job([...prompt(59), 7 as Token], { breakpoints: [hour, ...at(30)] }))).toEqual([
      [30, 16, 14, 0],
    ])
  })

  test('expire five minutes after their last use', async () => {
    const { all } = withSnapshots()
    const again = async (minutes: number): Promise<number | undefined> => {
      clock += minutes * 60_000
      const [[, read] = []] = await run(all, job(prompt(30), { breakpoints: at(20) }))
      return read
    }

    expect([await again(0), await again(4), await again(4), await again(6), await again(1)]).toEqual([
      0, 20, 20, 0, 20,
    ])
  })

  test('of other tenants are not reused, and snapshots without a breakpoint do not count', async () => {
    const { all } = withSnapshots()

    expect(
      await run(
        all,
        job(prompt(30)),
        job(prompt(30), { breakpoints: at(20) }),
        job(prompt(30)),
        job(prompt(30), { breakpoints: at(20), tenant: 'ben' }),
        job(prompt(30), { breakpoints: at(19) }),
      ),
    ).toEqual([
      [0, 0, 0, 0],
      [20, 0, 20, 0],
      [29, 0, 0, 0],
      [0, 0, 20, 0],
      [19, 0, 19, 0],
    ])
  })

  test('in the first chunk are ignored', async () => {
    const { all } = withSnapshots()

    expect(await run(all, job(prompt(30), { breakpoints: at(7) }))).toEqual([[0, 0, 0, 0]])
  })

  test('that cannot be saved are reported at the start, and corrected later', async () => {
    const { all } = withSnapshots({ save: () => Promise.reject(new Error('ENOSPC')) })
    const plans: unknown[] = []
    const one = job(prompt(60), { breakpoints: at(19, 40) })
    const { onStart } = one
    one.onStart = (plan) => {
      plans.push(plan.cacheWriteTokens['5m'])
      onStart(plan)
    }

    expect([await run(all, one), plans]).toEqual([[[0, 0, 0, 0]], [40]])
  })

  test('that are too large are reported only once', async () => {
    const { all } = withSnapshots({}, 60)
    const plans: unknown[] = []
    const one = (first: number) =>
      job(prompt(60, first), {
        breakpoints: at(40),
        onStart: (plan) => plans.push(plan.cacheWriteTokens['5m']),
      })

    await run(all, one(0), one(100))

    expect(plans).toEqual([40, 0])
  })

  test('of a damaged file are cached again', async () => {
    const { all } = withSnapshots({ sequenceCount: 1 })
    await run(all, job(prompt(30), { breakpoints: at(20) }), job(prompt(40, 500)))
    for (const name of readdirSync(folder)) await writeFile(join(folder, name), 'nonsense')

    expect(
      await run(
        all,
        job(prompt(30), { breakpoints: at(20) }),
        job(prompt(40, 500)),
        job(prompt(30), { breakpoints: at(20) }),
      ),
    ).toEqual([
      [0, 0, 20, 0],
      [32, 0, 0, 0],
      [20, 20, 0, 0],
    ])
  })

  test('are reused by a deterministic prompt in the pieces of a cold run', async () => {
    const { decoder, all } = withSnapshots({ sequenceCount: 1, chunksAtOnce: 1 })
    const seeded = (...lengths: readonly number[]) =>
      job(prompt(50), { breakpoints: at(...lengths), isDeterministic: true, maxTokens: 1 })
    const pieces = async (one: GenerationJob & Recorded): Promise<readonly (readonly number[])[]> => {
      decoder.steps.length = 0
      await all.run(one)
      return decoder.steps.flat().map(([, position, count]) => [position, count])
    }
    const cold = await pieces(seeded(19))
    await all.run(job(prompt(40, 500)))

    expect(await pieces(seeded(19))).toEqual(cold.slice(3))
    await all.run(job(prompt(40, 500)))
    // A cold run would end a piece at 12, and not at 19.
    const other = seeded(12)
    expect((await pieces(other))[0]?.[0]).toBe(0)
    expect(usageOf(other)).toEqual([0, 0, 12, 0])
  })

  test('long state is saved when another prompt takes the slot', async () => {
    const { all } = withSnapshots({ sequenceCount: 1 })
    const long = [...prompt(60)]

    expect(
      await run(all, job(long), job(prompt(20, 500)), job(prompt(20, 700)), job(long), job(prompt(20, 500))),
    ).toEqual([
      [0, 0, 0, 0],
      [0, 0, 0, 0],
      [0, 0, 0, 0],
      [48, 0, 0, 0],
      [0, 0, 0, 0],
    ])
    expect(readdirSync(folder)).toHaveLength(1)
  })
})

test('background jobs get a slot after all foreground jobs', async () => {
  const all = scheduler(fakeDecoder({ sequenceCount: 1 }))
  const order: number[] = []
  const run = (first: number, background: boolean): Promise<unknown> =>
    all.run(job(prompt(3, first), { background, onStart: () => order.push(first) }))

  await Promise.all([run(1, false), run(2, true), run(3, false), run(4, false)])

  expect(order).toEqual([1, 3, 4, 2])
})

test('a preempted job that aborts frees its sampler', async () => {
  const decoder = fakeDecoder({ sequenceCount: 1 })
  const all = scheduler(decoder)
  const controller = new AbortController()
  const { job: background, other, one } = withAnother(all, 50)
  const aborted = all.run({ ...background, signal: controller.signal })
  const { onToken } = one
  one.onToken = (token) => {
    controller.abort()
    return onToken(token)
  }

  expect(await Promise.all([aborted, other])).toEqual(['aborted', 'limit'])
  await all.whenIdle()
  expect(background.tokens.length).toBeLessThan(5)
  expect(decoder.samplers).toBe(0)
})

describe('a job with unread tokens', () => {
  /** A job that is backpressured while its client has four unread tokens. */
  const slow = (tokens: readonly Token[], more: Partial<GenerationJob> = {}) => {
    const client = { read: 0 }
    const slow: GenerationJob & Recorded = job(tokens, {
      maxTokens: 12,
      isBackpressured: () => slow.tokens.length - client.read >= 4,
      ...more,
    })
    return { slow, client }
  }

  test('pauses, and continues when the client has read its tokens', async () => {
    const decoder = fakeDecoder()
    const answers = scheduler(decoder)
    const { slow: paused, client } = slow(prompt(3))
    const ended = answers.run(paused)
    await vi.waitFor(() => expect(paused.tokens.length).toBeGreaterThanOrEqual(4))
    const other = job(prompt(3, 100), { maxTokens: 40 })
    await answers.run(other)

    expect(other.tokens).toHaveLength(40)
    expect(paused.tokens.length).toBeLessThanOrEqual(5)

    client.read = 100
    answers.wake()
    expect(await ended).toBe('limit')
    expect(paused.tokens).toEqual(prompt(12, 1))
    expect(decoder.samplers).toBe(0)
  })

  test('gives up its slot, and emits the rest afterwards', async () => {
    const decoder = fakeDecoder({ sequenceCount: 1 })
    const answers = scheduler(decoder)
    const { slow: paused, client } = slow(prompt(3))
    const ended = answers.run(paused)
    await vi.waitFor(() => expect(paused.tokens.length).toBeGreaterThanOrEqual(4))

    const other = job(prompt(3, 100))
    expect(await answers.run(other)).toBe('limit')

    client.read = 100
    answers.wake()
    expect(await ended).toBe('limit')
    expect(paused.tokens).toEqual(prompt(12, 1))
  })

  test('that gave up its slot takes another one only when most of them are read', async () => {
    const answers = scheduler(fakeDecoder({ sequenceCount: 1 }))
    const { slow: paused, client } = slow(prompt(3), {
      isBackpressured: ({ isSuspended }) => paused.tokens.length - client.read >= (isSuspended ? 1 : 4),
    })
    const ended = answers.run(paused)
    await vi.waitFor(() => expect(paused.tokens.length).toBeGreaterThanOrEqual(4))
    const { length } = paused.tokens
    await answers.run(job(prompt(3, 100)))

    client.read = length - 1
    answers.wake()
    // It has waited for longer than the next job, and would be first.
    await answers.run(job(prompt(3, 200)))
    expect(paused.tokens).toHaveLength(length)

    client.read = length
    answers.wake()
    await vi.waitFor(() => expect(paused.tokens.length).toBeGreaterThanOrEqual(length + 4))
    // It has its slot again, and pauses only at the higher limit.
    client.read = 100
    answers.wake()
    expect(await ended).toBe('limit')
    expect(paused.tokens).toEqual(prompt(12, 1))
  })

  test('ends when its client disconnects', async () => {
    const answers = scheduler(fakeDecoder())
    const controller = new AbortController()
    const { slow: paused } = slow(prompt(3), { signal: controller.signal })
    const ended = answers.run(paused)
    await vi.waitFor(() => expect(paused.tokens.length).toBeGreaterThanOrEqual(4))

    controller.abort()
    answers.wake()

    expect(await ended).toBe('aborted')
    await answers.whenIdle()
  })
})
