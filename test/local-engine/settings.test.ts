/** Options of the local engine, and loads for which the machine has too little memory. */
import { copyFile, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createLlm, type Llm, type LocalOptions } from '@modelmount/core'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { withMetadata } from '../support/broken-model.ts'
import { noiseModel } from '../support/models.ts'

let folder: string
let llm: Llm | undefined
const warnings: string[] = []
const runtimeDirs: string[] = []

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'settings-'))
  await copyFile(noiseModel, join(folder, 'noise.gguf'))
  await writeFile(join(folder, 'endless.gguf'), withMetadata('llama.context_length', 2 ** 24))
})

afterEach(async () => {
  await llm?.close()
  warnings.length = 0
})

afterAll(async () => {
  // A model process writes to its folder until it has exited.
  await vi.waitFor(
    async () => {
      for (const runtimeDir of runtimeDirs) expect(await readdir(runtimeDir)).toEqual([])
    },
    { timeout: 15_000, interval: 50 },
  )
  await rm(folder, { recursive: true })
})

async function start(local: LocalOptions): Promise<Llm> {
  const logger = { warn: (_: object, message: string) => warnings.push(message), error: () => {} }
  // A separate folder, because the app would otherwise share a model process of an earlier test.
  const runtimeDir = await mkdtemp(join(folder, 'run-'))
  runtimeDirs.push(runtimeDir)
  llm = await createLlm({ models: folder, local: { runtimeDir, ...local }, logger })
  return llm
}
const question = { model: 'tiny', sampling: { temperature: 0 } }
const hello = { model: 'tiny', temperature: 0 }

/** A model process with `freeBytes` of free memory, and a memory limit of `limit` bytes (0: no limit). */
async function processWith(freeBytes: number, limit = 0): Promise<string> {
  const real = createRequire(import.meta.url).resolve('@modelmount/core/model-process')
  const file = join(folder, `process-${freeBytes}-${limit}.mjs`)
  await writeFile(
    file,
    `process.constrainedMemory = () => ${limit}
     process.availableMemory = () => ${freeBytes}
     await import(${JSON.stringify(pathToFileURL(real).href)})`,
  )
  return file
}

test('a quantized KV cache takes less memory, and answers have another fingerprint', async () => {
  const look = async (local: LocalOptions) => {
    const { generate, loaded, close } = await start(local)
    const input = { kind: 'text', prompt: ['Hello'] } as const
    const { signal } = new AbortController()
    let text = ''
    let fingerprint = ''
    for await (const event of await generate({ ...question, input }, { signal })) {
      if (event.type === 'start') fingerprint = event.fingerprint
      if (event.type === 'text') text += event.text
    }
    const [{ sizeBytes } = { sizeBytes: 0 }] = loaded()
    await close()
    return { text, fingerprint, sizeBytes }
  }

  const f16 = await look({ kvCacheType: 'f16' })
  const q4 = await look({ kvCacheType: 'q4_0' })
  const plain = await look({ kvCacheType: 'f16', flashAttention: false, gpuLayers: 'max' })

  for (const { text } of [f16, q4, plain]) expect(text).toMatch(/^Hello!/)
  expect(q4.sizeBytes).toBeLessThan(f16.sizeBytes / 2)
  expect(new Set([f16, q4, plain].map(({ fingerprint }) => fingerprint)).size).toBe(3)
  // On a machine without a graphics card, `max` is reported.
  expect(warnings.filter((text) => !text.includes('found no graphics card'))).toEqual([])
})

test('a model without support for a quantized KV cache is loaded with f16, and one warning is logged', async () => {
  const { chat } = await start({ kvCacheType: 'q8_0', contextSize: 512 })

  await Promise.all([
    chat('a', { model: 'noise', maxTokens: 2 }),
    chat('b', { model: 'noise', maxTokens: 2 }),
  ])

  expect(warnings).toEqual(['The model "noise:latest" does not support a KV cache in q8_0; it is f16.'])
})

test('a context larger than the memory of the machine is rejected, and the next call is answered', async () => {
  const modelProcessPath = await processWith(500_000_000, 500_000_000)
  const { chat, load } = await start({ modelProcessPath })

  await expect(load('endless', { contextSize: 2 ** 24 })).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringContaining('and this machine has 0.5 GB.'),
    details: { param: 'model' },
  })
  expect((await chat('Hello', hello)).text).toBe('Hello! How can I help you?')
})

test('a context larger than the free memory is rejected with a retry time, and a smaller one is loaded', async () => {
  const modelProcessPath = await processWith(10_000_000)
  const { load, loaded } = await start({ modelProcessPath })

  // Repeated attempts do not count as failures of the model.
  for (let time = 0; time < 5; time++) {
    await expect(load('tiny', { contextSize: 8_192 })).rejects.toMatchObject({
      code: 'overloaded',
      message: expect.stringContaining('and 0.01 GB are free now.'),
      details: { retryAfterMs: 10_000 },
    })
  }
  await load('tiny', { contextSize: 256 })

  expect(loaded()).toMatchObject([{ contextSize: 256, state: 'ready' }])
})

test('with memory for fewer parallel sequences, the engine uses fewer, and all calls are answered', async () => {
  const modelProcessPath = await processWith(50_000_000)
  const { chat } = await start({ modelProcessPath })

  const answers = await Promise.all(Array.from({ length: 4 }, () => chat('Hello', hello)))

  expect(answers.map(({ text }) => text)).toEqual(Array(4).fill('Hello! How can I help you?'))
  expect(warnings).toEqual([expect.stringMatching(/runs [12] sequences in parallel instead of 4/)])
})

test('a context above the size that the model was trained for is lowered, and the log says so', async () => {
  const { load, loaded } = await start({ parallel: 1, contextSize: 500_000 })

  await load('tiny')

  const [{ contextSize } = { contextSize: 0 }] = loaded()
  expect(contextSize).toBeLessThan(500_000)
  expect(warnings).toEqual([
    `The model "tiny:latest" has a context of ${contextSize} tokens instead of 500000: it was trained for no more.`,
  ])
})

test('the default context size is lowered without a message in the log', async () => {
  const { load } = await start({ parallel: 1 })

  await load('tiny')

  expect(warnings).toEqual([])
})

test('an invalid contextSize is rejected, and the next call is answered', async () => {
  const { chat, load } = await start({ parallel: 1 })

  for (const contextSize of [Number.NaN, 1e12, -1, 2 ** 30, 0.5, '4096', 'Q8_0', null] as number[]) {
    await expect(load('tiny', { contextSize }), String(contextSize)).rejects.toMatchObject({
      code: 'invalid_request',
      details: { param: 'contextSize' },
    })
    expect((await chat('Hello', { ...hello, maxTokens: 1 })).usage.outputTokens).toBe(1)
  }
})

test('no call gets a context larger than maxContextSize', async () => {
  const { chat, load, loaded } = await start({ maxContextSize: 1_024, parallel: 1 })

  await chat('Hello', { ...hello, maxTokens: 1 })
  expect(loaded()).toMatchObject([{ contextSize: 1_024 }])
  await load('tiny', { contextSize: 1_024 })
  for (const options of [{ contextSize: 1_025 }, { defaultContextSize: 1_025 }])
    await expect(load('tiny', options)).rejects.toMatchObject({
      code: 'invalid_request',
      details: { param: 'contextSize' },
    })
})
