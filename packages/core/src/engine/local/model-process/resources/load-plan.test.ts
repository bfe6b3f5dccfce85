import type { GgufInsights } from 'node-llama-cpp'
import { expect, test } from 'vitest'
import type { ProcessConfig } from '../../ipc/process-config.ts'
import { type MemoryEnvironment, planMemory } from './load-plan.ts'
import type { MemoryNeed } from './memory-estimate.ts'

const config: ProcessConfig = {
  runtimeDir: '',
  name: '',
  folder: '',
  modelPath: '/m.gguf',
  modelName: 'm:latest',
  fingerprint: 'fp_1',
  threads: 1,
  tuneThreads: false,
  contextSize: 1_000,
  parallel: 4,
  gpuLayers: 'auto',
  kvCacheType: 'f16',
}

const mb = 1_000_000
/** A model with 100 MB of weights, and 10 MB for each sequence. */
const insights = (parts: object = {}): GgufInsights =>
  ({
    trainContextSize: 8_192,
    flashAttentionSupported: true,
    ggufFileInfo: { architectureMetadata: { attention: { head_count: 8 }, embedding_length: 512 } },
    configurationResolver: { resolveModelGpuLayersV2: async () => ({ gpuLayers: 0 }) },
    estimateModelResourceRequirementsV2: async () => ({ cpuRam: 100 * mb, gpuVram: 0 }),
    estimateContextResourceRequirementsV2: async ({ sequences }: { sequences: number }) => ({
      cpuRam: sequences * 10 * mb,
      gpuVram: 0,
    }),
    ...parts,
  }) as unknown as GgufInsights
const space = (free: number, total = 1_000_000): MemoryEnvironment => ({
  reserve: async () => ({ free: free * mb, total: total * mb }),
  waitForMemory: async () => false,
  vram: { free: 0, total: 0 },
  chunkSizes: { cpu: 64, gpu: 512 },
  cacheTypes: { f16: 1, q8_0: 8, q4_0: 2 },
})

test('a pooling model gets a context per thread or fewer with little memory, and evaluates a text in one batch', async () => {
  const asked: object[] = []
  const encoder = insights({
    ggufFileInfo: { architectureMetadata: { pooling_type: 1, attention: { causal: false } } },
    estimateContextResourceRequirementsV2: async (options: object) => {
      asked.push(options)
      return { cpuRam: 10 * mb, gpuVram: 0 }
    },
  })
  const quantized = { ...config, threads: 3, kvCacheType: 'q8_0' } as const

  const plan = await planMemory(quantized, encoder, space(1_000))
  const little = await planMemory(quantized, encoder, space(150))

  expect(plan).toMatchObject({ parallel: 3, batchSize: 1_000, kvCacheType: 'f16', need: { ram: 130 * mb } })
  expect(little).toMatchObject({ parallel: 2, need: { ram: 120 * mb } })
  expect(asked[0]).toMatchObject({ sequences: 1, batchSize: 1_000, isEmbeddingContext: true })
  expect(plan.notes).toEqual([])
})

test.each([
  [1_000, 4],
  [175, 4],
  [174, 3],
  [150, 2],
  [149, 1],
  [110, 1],
])('with %i MB free, %i sequences fit into four fifths, or one into all of it', async (free, parallel) => {
  const plan = await planMemory(config, insights(), space(free))

  expect(plan).toMatchObject({
    parallel,
    contextSize: 1_000,
    chunkSize: 64,
    need: { ram: (100 + parallel * 10) * mb },
  })
  expect(plan.notes).toHaveLength(parallel < 4 ? 1 : 0)
})

test.each([
  [109, 1_000, 'overloaded', 'needs at least 0.11 GB of memory, and 0.11 GB are free now'],
  [50, 109, 'invalid_request', 'needs at least 0.11 GB of memory, and this machine has 0.11 GB'],
])('not even one sequence fits into %i MB of %i: %s', async (free, total, code, message) => {
  await expect(planMemory(config, insights(), space(free, total))).rejects.toMatchObject({
    code,
    message: expect.stringContaining(message),
  })
})

test('a context is no larger than the model was trained for, and never smaller for lack of memory', async () => {
  const plan = await planMemory({ ...config, contextSize: 100_000 }, insights(), space(149))

  expect(plan).toMatchObject({ contextSize: 8_192, parallel: 1 })
})

test('the library is not asked to estimate a context that is too large', async () => {
  const asked: number[] = []
  const huge = insights({
    trainContextSize: 2 ** 24,
    estimateContextResourceRequirementsV2: async ({ sequences }: { sequences: number }) => {
      asked.push(sequences)
      return { cpuRam: 0, gpuVram: 0 }
    },
  })

  const plan = await planMemory({ ...config, contextSize: 2 ** 24, parallel: 256 }, huge, space(10_000))

  expect(plan.parallel).toBe(12)
  expect(Math.max(...asked) * 2 ** 24 * 48).toBeLessThan(10_000 * mb)
})

test('more tokens than the library can represent are not requested, whatever the memory', async () => {
  const endless = insights({
    trainContextSize: 2 ** 24,
    estimateContextResourceRequirementsV2: async () => ({ cpuRam: 0, gpuVram: 0 }),
  })

  const plan = await planMemory({ ...config, contextSize: 2 ** 24, parallel: 256 }, endless, space(1e9, 1e9))

  expect(plan.parallel).toBe(127)
})

test('if the library cannot estimate, the plan follows the settings as they are', async () => {
  const odd = insights({
    estimateModelResourceRequirementsV2: () => Promise.reject(new Error('Invalid type or block size')),
  })

  const plan = await planMemory(config, odd, space(1))

  expect(plan).toMatchObject({ parallel: 4, need: { ram: 0, vram: 0 }, notes: [] })
})

const shape = (attention: object, embedding_length?: number): object => ({
  ggufFileInfo: { architectureMetadata: { attention, embedding_length } },
})

test.each<[what: string, type: string, parts: object]>([
  ['heads of 64 values', 'q8_0', shape({ head_count: 8 }, 512)],
  ['heads of 80 values', 'f16', shape({ head_count: 8 }, 640)],
  ['keys of 64 and values of 48', 'f16', shape({ key_length: 64, value_length: 48 })],
  ['a number of heads for each layer', 'f16', shape({ head_count: [8, 4] }, 512)],
  ['no heads, but a state', 'q8_0', shape({ head_count: 0 }, 512)],
  ['no flash attention', 'f16', { flashAttentionSupported: false }],
])('with %s, a q8_0 KV cache becomes %s', async (_what, kvCacheType, parts) => {
  const plan = await planMemory({ ...config, kvCacheType: 'q8_0' }, insights(parts), space(1_000))

  expect(plan.kvCacheType).toBe(kvCacheType)
  expect(plan.notes).toHaveLength(kvCacheType === 'f16' ? 1 : 0)
})

const onCard = (
  need: (parallel: number) => MemoryNeed,
  resolve: () => Promise<{ gpuLayers: number }>,
): GgufInsights =>
  insights({
    configurationResolver: { resolveModelGpuLayersV2: resolve },
    estimateModelResourceRequirementsV2: async () => ({ cpuRam: 0, gpuVram: 0 }),
    estimateContextResourceRequirementsV2: async ({ sequences }: { sequences: number }) => {
      const { ram, vram } = need(sequences)
      return { cpuRam: ram, gpuVram: vram }
    },
  })

test("a graphics card's memory limits the number of sequences, too", async () => {
  const card = onCard(
    (parallel) => ({ ram: mb, vram: parallel * 10 * mb }),
    async () => ({ gpuLayers: 33 }),
  )
  const withCard = (free: number): MemoryEnvironment => ({
    ...space(1_000),
    vram: { free: free * mb, total: 64 * mb },
  })

  expect(await planMemory(config, card, withCard(30))).toMatchObject({
    parallel: 2,
    gpuLayers: 33,
    chunkSize: 512,
    chunksAtOnce: 1,
    batchSize: 512,
  })
  await expect(planMemory(config, card, withCard(9))).rejects.toMatchObject({
    code: 'overloaded',
    message: expect.stringContaining("of a graphics card's memory"),
  })
})

test('with `auto`, no layers are on the GPU if none fits, but a number that does not fit is an error', async () => {
  const full = onCard(
    () => ({ ram: mb, vram: 0 }),
    () => Promise.reject(new Error('Not enough VRAM')),
  )

  expect((await planMemory(config, full, space(1_000))).gpuLayers).toBe(0)
  await expect(planMemory({ ...config, gpuLayers: 'max' }, full, space(1_000))).rejects.toThrow(
    'Not enough VRAM',
  )
})

test('memory is freed for all wanted sequences or for one, and then reserved', async () => {
  const asked: number[] = []
  let free = 60
  const reserve: MemoryEnvironment['reserve'] = async (bytes) => {
    asked.push(bytes / mb)
    if (bytes > free * mb) free = Math.min(120, bytes / mb)
    return { free: free * mb, total: 170 * mb }
  }

  const plan = await planMemory(config, insights(), { ...space(0), reserve })

  // Four sequences need 140 MB, which is four fifths of 175 MB. The machine has only 170 MB.
  expect(asked).toEqual([0, 110, 110])
  expect(plan).toMatchObject({ parallel: 1, need: { ram: 110 * mb }, mappedBytes: 100 * mb })
})

test('no memory is freed for a model that exceeds the machine', async () => {
  const asked: number[] = []
  const reserve: MemoryEnvironment['reserve'] = async (bytes) => {
    asked.push(bytes)
    return { free: 50 * mb, total: 100 * mb }
  }

  await expect(planMemory(config, insights(), { ...space(0), reserve })).rejects.toMatchObject({
    code: 'invalid_request',
  })
  expect(asked).toEqual([0])
})

test('waits for other processes if not even one sequence fits, and then uses the free memory', async () => {
  let free = 50
  const asked: number[] = []
  const others: MemoryEnvironment = {
    ...space(0),
    reserve: async (bytes) => {
      asked.push(bytes / mb)
      return { free: free * mb, total: 1_000 * mb }
    },
    waitForMemory: async () => {
      free += 50
      return true
    },
  }

  const plan = await planMemory(config, insights(), others)

  expect(plan.parallel).toBe(2)
  expect(asked).toEqual([0, 175, 110, 175, 110, 175, 120])
})

test('does not wait for a model that exceeds the machine', async () => {
  let waits = 0
  const waitForMemory = async (): Promise<boolean> => ++waits < 3

  await expect(planMemory(config, insights(), { ...space(50, 109), waitForMemory })).rejects.toMatchObject({
    code: 'invalid_request',
  })
  expect(waits).toBe(0)
})

test('adds the memory of adapters', async () => {
  const adapter = { path: '/a.gguf', scale: 1, sizeBytes: 20 * mb }

  const plan = await planMemory({ ...config, adapters: [adapter, adapter] }, insights(), space(1_000))

  expect(plan.need.ram).toBe((100 + 4 * 10 + 40) * mb)
})
