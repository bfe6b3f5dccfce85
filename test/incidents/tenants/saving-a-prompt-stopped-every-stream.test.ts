/**
 * Found by a measurement of this project: when prompts displaced saved states of 3,000 tokens, every stream stopped
 * until all states were written and hashed, one after the other.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { GenerateEvent } from '../../../packages/core/src/engine/events.ts'
import type { Decoder } from '../../../packages/core/src/engine/local/model-process/decoding/decoder.ts'
import { Scheduler } from '../../../packages/core/src/engine/local/model-process/decoding/scheduler.ts'
import { SnapshotStore } from '../../../packages/core/src/engine/local/model-process/kv-cache/snapshots.ts'
import { openDecoder } from '../../../packages/core/src/engine/local/model-process/llama/addon-decoder.ts'
import { loadModel } from '../../../packages/core/src/engine/local/model-process/llama/load.ts'
import type { RuntimeModel } from '../../../packages/core/src/engine/local/model-process/model.ts'
import { runRequest } from '../../../packages/core/src/engine/local/model-process/run-request.ts'
import { config, surroundings } from '../../support/bindings.ts'
import { budgetOf } from '../../support/budgets.ts'
import { noiseModel } from '../../support/models.ts'

const streamCount = 4
const stateCount = 8
const stateTokens = 3_000

let folder: string
let model: RuntimeModel
const progress = { steps: 0 }
/** Begins and ends of native jobs, and the turn of the event loop that follows each end. */
const order: ('decode' | 'prefill' | 'save' | 'load' | 'done' | 'turn')[] = []

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'incident-'))
  let decoder: Decoder | undefined
  const load = { modelPath: noiseModel, contextSize: 4_096, parallel: streamCount + stateCount }
  const loaded = await loadModel({ ...config, ...load, folder }, progress, (...parts) => {
    decoder = openDecoder(...parts)
    return decoder
  })
  if (!decoder) throw new Error('The internals of node-llama-cpp have changed.')
  record(decoder)
  const snapshots = new SnapshotStore(join(folder, 'states'), 2 ** 30)
  model = { ...loaded, runner: new Scheduler(decoder, progress, snapshots) }
})
afterAll(() => rmSync(folder, { recursive: true }))

function record(decoder: Decoder): void {
  const decode = decoder.decode.bind(decoder)
  const save = decoder.save.bind(decoder)
  const load = decoder.load.bind(decoder)
  async function run<T>(kind: (typeof order)[number], work: () => Promise<T>): Promise<T> {
    order.push(kind)
    try {
      return await work()
    } finally {
      order.push('done')
      setImmediate(() => order.push('turn'))
    }
  }
  decoder.decode = (entries) =>
    run(entries.every(({ tokens }) => tokens.length === 1) ? 'decode' : 'prefill', () => decode(entries))
  decoder.save = (...given) => run('save', () => save(...given))
  decoder.load = (...given) => run('load', () => load(...given))
}

interface Asked {
  readonly tenant: string
  readonly maxTokens: number
  readonly signal?: AbortSignal
  readonly onText?: () => void
}

async function ask(
  text: string,
  { tenant, maxTokens, onText, signal = new AbortController().signal }: Asked,
): Promise<GenerateEvent> {
  const events: GenerateEvent[] = []
  await runRequest(
    {
      model: 'tiny',
      input: { kind: 'text', prompt: [text], template: false },
      maxTokens,
      sampling: { temperature: 0, ignoreEos: true },
    },
    {
      ...{ model, ...surroundings, progress, tenant, weight: 1, background: false },
      ...{ budget: budgetOf({ tenant, signal }), signal },
    },
    (event) => {
      events.push(event)
      if (event.type === 'text') onText?.()
    },
  )
  return events.at(-1) as GenerateEvent
}

/** Runs four streams while the callback runs. */
async function besideStreams(callback: () => Promise<void>): Promise<void> {
  const leaving = new AbortController()
  let begun = 0
  const streams = Array.from({ length: streamCount }, (_, index) =>
    ask(`Stream ${index}:`, {
      ...{ tenant: 'streams', maxTokens: 4_000, signal: leaving.signal },
      onText: () => begun++,
    }),
  )
  while (begun < 4 * streamCount) await nextTurn()
  await callback()
  leaving.abort()
  await Promise.all(streams)
  await model.runner.whenIdle()
}

const indexes = Array.from({ length: stateCount }, (_, index) => index)
const askLong = (maxTokens: number) =>
  Promise.all(
    indexes.map((index) =>
      ask(`${index} ${'word '.repeat(stateTokens)}`, { tenant: `long ${index}`, maxTokens }),
    ),
  )

/** Takes the slots of all long prompts, each by another short one. */
async function displaceAll(): Promise<void> {
  const leaving = new AbortController()
  const begun = new Set<number>()
  await Promise.all(
    indexes.map((index) =>
      ask(`Short ${index}`, {
        ...{ tenant: `short ${index}`, maxTokens: 4_000, signal: leaving.signal },
        onText: () => {
          if (begun.add(index).size === stateCount) leaving.abort()
        },
      }),
    ),
  )
}

test('eight prompts whose states are saved and loaded stop four streams for one of them at a time', async () => {
  const ends = await askLong(1)
  for (const end of ends)
    expect(end).toMatchObject({ usage: { inputTokens: expect.closeTo(stateTokens, -2.5) } })
  let reused: readonly GenerateEvent[] = []
  let observed: typeof order = []

  await besideStreams(async () => {
    order.length = 0
    await displaceAll()
    reused = await askLong(40)
    observed = [...order]
  })

  const count = (kind: string) => observed.filter((one) => one === kind).length
  expect([count('save'), count('load')]).toEqual([stateCount, stateCount])
  const all = observed.join(' ')
  const transfers = all.split('decode').map((part) => part.match(/save|load/g)?.length ?? 0)
  expect(Math.max(...transfers)).toBe(1)
  // The next native job begins at once: nothing but native code runs while streams are stopped.
  expect(all.match(/done turn \w+/g)).toBeNull()
  for (const end of reused)
    expect(end).toMatchObject({ usage: { reusedTokens: expect.closeTo(stateTokens, -2.5) } })
})
