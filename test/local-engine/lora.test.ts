/** Models with LoRA adapters have their own answers, fingerprints and model processes. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type AdaptedModel, createLlm, type Llm } from '@modelmount/core'
import { modelPath } from '@modelmount/tiny-model'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { adapterFile, halvesFor } from '../support/adapter.ts'
import { textEntry } from '../support/gguf.ts'
import { encoderModel } from '../support/models.ts'

let folder: string
let llm: Llm

const layers = Array.from({ length: 6 }, (_, layer) => `blk.${layer}`)
/** Adapter tensors for every matrix, which need more nodes in the compute graph than the model alone. */
const everywhere = layers.flatMap((layer) => [
  ...halvesFor(`${layer}.attn_q.weight`, [256, 512]),
  ...halvesFor(`${layer}.attn_k.weight`, [256, 256]),
  ...halvesFor(`${layer}.attn_v.weight`, [256, 256]),
  ...halvesFor(`${layer}.attn_output.weight`, [512, 256]),
  ...halvesFor(`${layer}.ffn_gate.weight`, [256, 448]),
  ...halvesFor(`${layer}.ffn_up.weight`, [256, 448]),
  ...halvesFor(`${layer}.ffn_down.weight`, [448, 256]),
])

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'lora-'))
  const at = (name: string): string => join(folder, `${name}.gguf`)
  const files = {
    mine: adapterFile(),
    idle: adapterFile({ weight: 0 }),
    wide: adapterFile({ tensors: everywhere, weight: 0.01 }),
    wider: adapterFile({ tensors: everywhere, weight: 0.02 }),
    short: adapterFile().subarray(0, -64),
    forEncoder: adapterFile({
      tensors: halvesFor('blk.0.ffn_down.weight', [256, 64]),
      entries: { 'general.architecture': textEntry('general.architecture', 'bert') },
    }),
    other: adapterFile({ tensors: halvesFor('blk.0.ffn_down.weight', [512, 256]) }),
  }
  for (const [name, bytes] of Object.entries(files)) await writeFile(at(name), bytes)
  const on = (name: string, ...adapters: AdaptedModel['adapters']): AdaptedModel => ({
    name,
    file: modelPath,
    adapters,
  })
  llm = await createLlm({
    models: [
      on('full', { file: at('mine') }),
      on('half', { file: at('mine'), scale: 0.5 }),
      on('off', { file: at('mine'), scale: 0 }),
      on('idle', { file: at('idle') }),
      on('many', { file: at('wide') }, { file: at('wider'), scale: -1 }, { file: at('mine') }),
      on('short', { file: at('short') }),
      on('other', { file: at('mine') }, { file: at('other') }),
      { name: 'encoder', file: encoderModel, adapters: [{ file: at('forEncoder') }] },
      on('base', { file: modelPath }),
    ],
    local: { contextSize: 256, parallel: 2, maxLoadedModels: 2, reloadCooldown: 0 },
  })
})

afterAll(async () => {
  await llm.close()
  await rm(folder, { recursive: true, force: true })
})

async function ask(model: string) {
  const { signal } = new AbortController()
  const input = { kind: 'text', prompt: ['Hello'] } as const
  let [text, fingerprint] = ['', '']
  const request = { model, input, maxTokens: 12, sampling: { temperature: 0 }, logprobs: 0 }
  const logprobs: number[] = []
  for await (const event of await llm.generate(request, { signal })) {
    if (event.type === 'start') fingerprint = event.fingerprint
    if (event.type === 'text') {
      text += event.text
      logprobs.push(...(event.logprobs ?? []).map(({ logprob }) => logprob))
    }
  }
  const processId = llm.loaded().find(({ name }) => name === `${model}:latest`)?.processId
  return { text, fingerprint, processId, logprobs }
}

test('an adapter changes the answers according to its scale, and not at all with a scale of 0', async () => {
  const plain = await ask('tiny')
  const full = await ask('full')
  const half = await ask('half')
  const off = await ask('off')
  const idle = await ask('idle')

  expect(plain.text).not.toBe('')
  expect(full.logprobs[0]).not.toBeCloseTo(plain.logprobs[0] ?? 0, 2)
  expect(half.logprobs[0]).not.toBeCloseTo(full.logprobs[0] ?? 0, 2)
  expect(half.logprobs[0]).not.toBeCloseTo(plain.logprobs[0] ?? 0, 2)
  expect(full.text).not.toBe(plain.text)
  for (const { text, logprobs } of [off, idle]) {
    expect(text).toBe(plain.text)
    expect(logprobs).toEqual(plain.logprobs)
  }
  const all = [plain, full, half, off, idle]
  expect(new Set(all.map(({ fingerprint }) => fingerprint)).size).toBe(all.length)
  expect(new Set(all.map(({ processId }) => processId)).size).toBe(all.length)
}, 60_000)

test('a changed adapter file gives another fingerprint, model process and answer', async () => {
  const before = await ask('full')
  await writeFile(join(folder, 'mine.gguf'), adapterFile({ tensors: everywhere, weight: 0.3 }))

  const after = await ask('full')

  expect(after.fingerprint).not.toBe(before.fingerprint)
  expect(after.processId).not.toBe(before.processId)
  expect(after.text).not.toBe(before.text)
}, 60_000)

test('several adapters for every matrix of the model work together', async () => {
  const { text } = await ask('many')

  expect(text).not.toBe('')
}, 60_000)

test.each([
  ['short', 'adapter short.gguf'],
  ['other', 'adapter other.gguf'],
  ['base', 'adapter tiny-chat.gguf'],
])('a bad adapter is rejected with its file name, and no process starts: %s', async (model, named) => {
  await expect(ask(model)).rejects.toMatchObject({
    code: 'upstream',
    message: expect.stringContaining(`The ${named} of the model "${model}:latest" cannot be used`),
  })
  expect(llm.loaded().map(({ name }) => name)).not.toContain(`${model}:latest`)
})

test('a pooling model with adapters is rejected', async () => {
  await expect(llm.embed({ model: 'encoder', inputs: ['Hello'] })).rejects.toMatchObject({
    code: 'upstream',
    message: expect.stringContaining(
      'The model "encoder:latest" is a pooling model and does not support adapters',
    ),
  })
}, 60_000)
