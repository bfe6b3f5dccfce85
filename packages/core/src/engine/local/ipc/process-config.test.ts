import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { ProcessConfig, ProcessRecord, packageVersion } from './process-config.ts'

test('a process config needs threads, a context and a supported KV cache type', () => {
  const config = {
    packageVersion,
    runtimeDir: '/tmp/run',
    name: 'm',
    folder: '/tmp/run/process',
    modelPath: '/m.gguf',
    modelName: 'm:latest',
    fingerprint: 'fp_1',
    libraryVersion: '3.22.1',
    cards: { CUDA_VISIBLE_DEVICES: '0' },
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

test('the version of the package is the one of its manifest', () => {
  const manifest = readFileSync(new URL('../../../../package.json', import.meta.url), 'utf8')

  expect(JSON.parse(manifest).version).toBe(packageVersion)
})

test('records of earlier and later versions are read, since all versions share the memory', () => {
  const first = {
    ...{ processId: 7, namespace: 'pid:[1]', folder: '/run/process-1' },
    ...{ state: 'busy', since: 5, reservedBytes: 9 },
  }

  expect(ProcessRecord.parse({ ...first, addedLater: 'text' })).toEqual({
    ...first,
    ...{ sizeBytes: 0, reservedVramBytes: 0, vramBytes: 0, cards: {} },
  })
})
