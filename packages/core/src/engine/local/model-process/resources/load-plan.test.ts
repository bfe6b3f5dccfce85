import type { GgufInsights } from 'node-llama-cpp'
import { describe, expect, test } from 'vitest'
import type { ProcessConfig } from '../../ipc/process-config.ts'
import { type MemoryEnvironment, planMemory } from './load-plan.ts'
import type { MachineMemory } from './machine-memory.ts'

const config: ProcessConfig = {
  packageVersion: '',
  runtimeDir: '',
  name: '',
  folder: '',
  modelPath: '/m.gguf',
  modelName: 'm:latest',
  fingerprint: 'fp_1',
  libraryVersion: '',
  cards: {},
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
    totalLayers: 33,
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
/** Memory without a graphics card. */
const ramOf = (free: number, total: number): MachineMemory => ({
  ram: { free: free * mb, total: total * mb },
  vram: { free: 0, total: 0 },
})
const space = (free: number, total = 1_000_000): MemoryEnvironment => ({
  reserve: async () => ramOf(free, total),
  readVram: async () => ({ free: 0, total: 0 }),
  waitForMemory: async () => false,
  waitForVramLoads: async () => false,
  chunkSizes: { cpu: 64, gpu: 512 },
  cacheTypes: { f16: 1, q8_0: 8, q4_0: 2 },
})

test('a pooling model gets a context per thread or fewer with little memory, and evaluates a text in one batch', async () => {
  const asked: object[] = []
  const encoder = insights({
    ggufFileInfo: {
      architectureMetadata: { pooling_type: 1, attention: { causal: false } },
      metadata: { tokenizer: { ggml: { tokens: Array(5_000) } } },
    },
    estimateContextResourceRequirementsV2: async (options: object) => {
      asked.push(options)
      return { cpuRam: 10 * mb, gpuVram: 0 }
    },
  })
  const quantized = { ...config, threads: 3, kvCacheType: 'q8_0' } as const
  /** Logits of 128 tokens. */
  const outputs = 4 * 5_000 * 128

  const plan = await planMemory(quantized, encoder, space(1_000))
  const little = await planMemory(quantized, encoder, space(150))

  expect(plan).toMatchObject({
    parallel: 3,
    batchSize: 1_000,
    kvCacheType: 'f16',
    need: { ram: 130 * mb + 3 * outputs },
  })
  expect(little).toMatchObject({ parallel: 1, need: { ram: 110 * mb + outputs } })
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

/** A model with 33 layers of 2 MB, and 10 MB for each sequence, on a card or in RAM. */
const onCard = (): GgufInsights => {
  const share = (layers: number, bytes: number) => ({
    cpuRam: (1 - layers / 33) * bytes + mb,
    gpuVram: (layers / 33) * bytes,
  })
  return insights({
    configurationResolver: {
      resolveModelGpuLayersV2: async (
        _wanted: object,
        { getVramState }: { getVramState: () => Promise<{ free: number }> },
      ) => {
        const { free } = await getVramState()
        const gpuLayers = Math.min(33, Math.floor((free / (106 * mb)) * 33))
        if (gpuLayers === 0) throw new Error('Not enough VRAM')
        return { gpuLayers }
      },
    },
    estimateModelResourceRequirementsV2: async ({ gpuLayers }: { gpuLayers: number }) =>
      share(gpuLayers, 66 * mb),
    estimateContextResourceRequirementsV2: async ({
      sequences,
      modelGpuLayers,
    }: {
      sequences: number
      modelGpuLayers: number
    }) => share(modelGpuLayers, sequences * 10 * mb),
  })
}

/** A machine with a card. `waitFor*` free its memory, if other processes hold some. */
function withCard(free: number, { total = 1_000, idle = 0, loading = 0, busy = 0 } = {}) {
  const asked: number[] = []
  const waits: string[] = []
  const waitFor = (what: string, freed: number) => async (): Promise<boolean> => {
    waits.push(what)
    free += freed
    return freed > 0
  }
  const environment: MemoryEnvironment = {
    ...space(1_000),
    reserve: async ({ vram }) => {
      asked.push(Math.round(vram / mb))
      if (vram > free * mb) {
        free += idle
        idle = 0
      }
      return { ...ramOf(1_000, 1_000), vram: { free: free * mb, total: total * mb } }
    },
    waitForVramLoads: async () => {
      const freed = loading
      loading = 0
      return waitFor('loads', freed)()
    },
    waitForMemory: async () => {
      const freed = busy
      busy = 0
      return waitFor('memory', freed)()
    },
  }
  return { environment, asked, waits }
}

describe('on a graphics card', () => {
  test('all layers and sequences are planned, and their memory is reserved', async () => {
    const { environment, asked } = withCard(200)

    const plan = await planMemory(config, onCard(), environment)

    expect(plan).toMatchObject({ parallel: 4, gpuLayers: 33, chunkSize: 512, chunksAtOnce: 1 })
    expect(plan.need.vram).toBeCloseTo(106 * mb)
    expect(asked).toEqual([0, 106])
  })

  test('all layers come before all sequences', async () => {
    // The library is asked for layers beside the contexts of all sequences.
    const cautious = onCard()
    Object.assign(cautious.configurationResolver, {
      resolveModelGpuLayersV2: async () => ({ gpuLayers: 20 }),
    })
    const { environment } = withCard(90)

    const plan = await planMemory(config, cautious, environment)

    expect(plan).toMatchObject({ gpuLayers: 33, parallel: 1 })
  })

  test('if the library cannot estimate, `auto` uses the layers that it suggests', async () => {
    const odd = onCard()
    odd.estimateModelResourceRequirementsV2 = () => Promise.reject(new Error('Invalid type or block size'))

    expect(await planMemory(config, odd, withCard(90).environment)).toMatchObject({ gpuLayers: 28 })
  })

  test('for a model that does not fit beside a busy one, idle models are evicted for a part of its layers', async () => {
    const { environment, asked } = withCard(20, { total: 100, idle: 40 })
    const accepted: (boolean | undefined)[] = []
    const reserve: MemoryEnvironment['reserve'] = (need, readVram) => {
      accepted.push(need.acceptsLessVram)
      return environment.reserve(need, readVram)
    }

    expect(await planMemory(config, onCard(), { ...environment, reserve })).toMatchObject({ gpuLayers: 18 })

    expect(asked.slice(0, 2)).toEqual([0, 76])
    expect(accepted.slice(0, 2)).toEqual([undefined, true])
  })

  test('its memory limits the number of sequences, too', async () => {
    const { environment } = withCard(110)

    expect(await planMemory(config, onCard(), environment)).toMatchObject({ parallel: 2, gpuLayers: 33 })
  })

  test('idle models are evicted for all layers and sequences, before fewer layers are planned', async () => {
    const { environment, asked, waits } = withCard(20, { idle: 200 })

    expect(await planMemory(config, onCard(), environment)).toMatchObject({ parallel: 4, gpuLayers: 33 })
    expect(asked).toEqual([0, 133, 106])
    expect(waits).toEqual([])
  })

  test('with `auto`, another load is waited for, but busy models are not', async () => {
    const loading = withCard(20, { loading: 200 })
    const busy = withCard(30, { busy: 200 })

    expect(await planMemory(config, onCard(), loading.environment)).toMatchObject({ gpuLayers: 33 })
    expect(loading.waits).toEqual(['loads'])
    const plan = await planMemory(config, onCard(), busy.environment)
    expect(plan.gpuLayers).toBe(9)
    expect(busy.waits).toEqual(['loads'])
  })

  test('with `auto` and no room for a layer, the model is planned for the CPU', async () => {
    const { environment } = withCard(1)

    const plan = await planMemory(config, onCard(), environment)

    expect(plan).toMatchObject({ gpuLayers: 0, parallel: 4, chunkSize: 64, need: { vram: 0 } })
  })

  test('for a model that is larger than the card, idle models are evicted', async () => {
    const { environment, asked } = withCard(20, { total: 60, idle: 40 })

    expect(await planMemory(config, onCard(), environment)).toMatchObject({ gpuLayers: 18 })
    expect(asked[1]).toBe(60)
  })

  test('a number of layers or `max` waits for busy models, and is an error if it does not fit', async () => {
    const busy = withCard(20, { busy: 200 })
    const plan = await planMemory({ ...config, gpuLayers: 'max' }, onCard(), busy.environment)
    expect(plan.gpuLayers).toBe(33)
    expect(busy.waits).toEqual(['memory'])

    const full = withCard(20)
    await expect(planMemory({ ...config, gpuLayers: 33 }, onCard(), full.environment)).rejects.toMatchObject({
      code: 'overloaded',
      message: expect.stringContaining("needs at least 0.076 GB of a graphics card's memory, and 0.02 GB"),
    })
    const small = withCard(20, { total: 50 })
    await expect(
      planMemory({ ...config, gpuLayers: 'max' }, onCard(), small.environment),
    ).rejects.toMatchObject({ code: 'invalid_request', message: expect.stringContaining('has 0.05 GB') })
  })

  test('a number of layers is at most that of the model', async () => {
    const few = await planMemory({ ...config, gpuLayers: 5 }, onCard(), withCard(500).environment)
    const many = await planMemory({ ...config, gpuLayers: 99 }, onCard(), withCard(500).environment)

    expect([few.gpuLayers, many.gpuLayers]).toEqual([5, 33])
  })
})

test('memory that another process takes between the measurement and the reservation is not planned', async () => {
  const asked: number[] = []
  const reserve: MemoryEnvironment['reserve'] = async ({ ram }) => {
    asked.push(ram / mb)
    return ramOf(asked.length > 1 ? 120 : 1_000, 1_000)
  }

  const plan = await planMemory(config, insights(), { ...space(0), reserve })

  expect(plan.parallel).toBe(1)
  expect(asked).toEqual([0, 140, 0, 175, 110])
})

test('a plan is given up if its memory is taken each time', async () => {
  const reserve: MemoryEnvironment['reserve'] = async ({ ram }) => ramOf(ram === 0 ? 1_000 : 10, 1_000)

  await expect(planMemory(config, insights(), { ...space(0), reserve })).rejects.toMatchObject({
    code: 'overloaded',
  })
})

test('memory is freed for all wanted sequences or for one, and then reserved', async () => {
  const asked: number[] = []
  let free = 60
  const reserve: MemoryEnvironment['reserve'] = async ({ ram }) => {
    asked.push(ram / mb)
    if (ram > free * mb) free = Math.min(120, ram / mb)
    return ramOf(free, 170)
  }

  const plan = await planMemory(config, insights(), { ...space(0), reserve })

  // Four sequences need 140 MB, which is four fifths of 175 MB. The machine has only 170 MB.
  expect(asked).toEqual([0, 110, 110])
  expect(plan).toMatchObject({ parallel: 1, need: { ram: 110 * mb }, mappedBytes: 100 * mb })
})

test('no memory is freed for a model that exceeds the machine', async () => {
  const asked: number[] = []
  const reserve: MemoryEnvironment['reserve'] = async ({ ram }) => {
    asked.push(ram)
    return ramOf(50, 100)
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
    reserve: async ({ ram }) => {
      asked.push(ram / mb)
      return ramOf(free, 1_000)
    },
    waitForMemory: async () => {
      free += 50
      return true
    },
  }

  const plan = await planMemory(config, insights(), others)

  expect(plan.parallel).toBe(2)
  expect(asked).toEqual([0, 175, 110, 0, 175, 110, 0, 175, 120])
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
