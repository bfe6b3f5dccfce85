import { expect, test } from 'vitest'
import { ProcessConfig } from './process-config.ts'

test('a process config needs threads, a context and a supported KV cache type', () => {
  const config = {
    runtimeDir: '/tmp/run',
    name: 'm',
    folder: '/tmp/run/process',
    modelPath: '/m.gguf',
    modelName: 'm:latest',
    fingerprint: 'fp_1',
    threads: 1,
    tuneThreads: false,
    contextSize: 1,
    parallel: 1,
    gpuLayers: 'auto',
    kvCacheType: 'f16',
  }

  expect(ProcessConfig.parse(config)).toEqual(config)
  expect(ProcessConfig.safeParse({ ...config, threads: 0 }).success).toBe(false)
  expect(ProcessConfig.safeParse({ ...config, contextSize: 0 }).success).toBe(false)
  for (const kvCacheType of ['i32', 'Q8_0', 'q4_1', 'currentQuant', 26])
    expect(ProcessConfig.safeParse({ ...config, kvCacheType }).success).toBe(false)
})
