import { beforeAll, describe, expect, test } from 'vitest'
import { ask, config, textOf } from '../../../../../../../test/support/bindings.ts'
import { narrowModel, noiseModel } from '../../../../../../../test/support/models.ts'
import type { RuntimeModel } from '../model.ts'
import { loadModel } from './load.ts'

let own: RuntimeModel

beforeAll(async () => {
  own = await loadModel(config, { steps: 0 })
})

describe('KV cache data types', () => {
  test('q8_0 and q4_0 take less memory, in proportion to their blocks, and the model works', async () => {
    const sizes: number[] = []
    for (const kvCacheType of ['f16', 'q8_0', 'q4_0'] as const) {
      const model = await loadModel({ ...config, modelPath: narrowModel, kvCacheType }, { steps: 0 })
      expect(textOf(await ask(model, 'Hello'))).toMatch(/^Hello!/)
      expect(model.notes).toEqual([])
      sizes.push(model.sizeBytes)
    }

    const [f16 = 0, q8 = 0, q4 = 0] = sizes
    // For 32 values: 64 bytes, 34 bytes, 18 bytes.
    expect((f16 - q4) / (f16 - q8)).toBeCloseTo((64 - 18) / (64 - 34), 5)
  }, 60_000)

  test('a model with heads of a size that blocks do not divide gets f16, and a note says so', async () => {
    const noise = { ...config, modelPath: noiseModel, modelName: 'noise:latest' }

    const plain = await loadModel(noise, { steps: 0 })
    const model = await loadModel({ ...noise, kvCacheType: 'q8_0' }, { steps: 0 })

    expect(model.sizeBytes).toBe(plain.sizeBytes)
    expect(model.notes).toEqual(['The model "noise:latest" does not support a KV cache in q8_0; it is f16.'])
    expect(textOf(await ask(model, 'Hello'))).toBe(textOf(await ask(plain, 'Hello')))
  }, 60_000)
})

test('the model works with and without flash attention', async () => {
  for (const flashAttention of [true, false]) {
    const model = await loadModel({ ...config, flashAttention }, { steps: 0 })
    expect(textOf(await ask(model, 'Hello'))).toBe('Hello! How can I help you?')
  }
}, 60_000)

test('without a graphics card, the number of GPU layers makes no difference', async ({ skip }) => {
  skip(own.gpuBytes > 0, 'this machine has a graphics card')
  for (const gpuLayers of ['max', 0, 65_536] as const) {
    const model = await loadModel({ ...config, gpuLayers }, { steps: 0 })
    expect(model).toMatchObject({ sizeBytes: own.sizeBytes, gpuBytes: 0 })
  }
}, 60_000)

describe('with little memory', () => {
  const room = (free: number, total: number) => ({
    reserve: async () => ({ ram: { free, total }, vram: { free: 0, total: 0 } }),
    waitForMemory: async () => false,
    waitForVramLoads: async () => false,
  })
  const withFree = (free: number, total = free): Promise<RuntimeModel> =>
    loadModel(config, { steps: 0 }, undefined, room(free, total))

  test('the model runs fewer sequences in parallel, and a note says so', async () => {
    const model = await withFree(own.sizeBytes)

    expect(model.parallel).toBeLessThan(4)
    expect(model.parallel).toBeGreaterThan(1)
    expect(model).toMatchObject({ contextSize: 512, notes: [expect.stringContaining('instead of 4')] })
    expect(model.sizeBytes).toBeLessThan(own.sizeBytes * 0.8)
    expect(textOf(await ask(model, 'Hello'))).toBe('Hello! How can I help you?')
  })

  test('a model that does not fit, now or ever, is rejected before its weights are read', async () => {
    const progress = { steps: 0 }
    const load = (free: number, total: number) => loadModel(config, progress, undefined, room(free, total))

    await expect(load(5_000_000, 9e9)).rejects.toMatchObject({
      code: 'overloaded',
      message: expect.stringMatching(
        /^The model "tiny:latest" with a context of 512 tokens needs at least 0\.00[6-9]\d* GB of memory, and 0\.005 GB are free now\.$/,
      ),
      details: { retryAfterMs: 10_000 },
    })
    await expect(load(5_000_000, 6_000_000)).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('and this machine has 0.006 GB.'),
      details: { param: 'model' },
    })
    expect(progress.steps).toBe(0)
  })
})
