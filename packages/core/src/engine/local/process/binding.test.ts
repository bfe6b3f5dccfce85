import { mkdtempSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { modelPath } from '@modelmount/tiny-model'
import type { Llama, LlamaContext, LlamaModel, Token } from 'node-llama-cpp'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { narrowModel, noiseModel } from '../../../../../../test/support/models.ts'
import { answerGrammar } from '../../../grammar/answer.ts'
import { parseChat } from '../../../template/jinja.ts'
import type { GenerateEvent } from '../../events.ts'
import type { GenerateRequest } from '../../request.ts'
import { answer, type Work } from './answer.ts'
import { type Binding, loadModel, openDecoder } from './binding.ts'
import type { PromptRenderer } from './render.ts'
import type { Decoder } from './scheduler.ts'

const config = {
  runFolder: '',
  name: '',
  folder: '',
  modelPath,
  modelName: 'tiny:latest',
  fingerprint: 'fp_1',
  threads: 1,
  tuneThreads: false,
  contextSize: 512,
  parallel: 4,
  gpuLayers: 'auto',
  kvCacheType: 'f16',
} as const
const renderer = {
  render: async ({ template, messages, options }) => parseChat(template)(messages, options),
} as Pick<PromptRenderer, 'render'> as PromptRenderer
const grammars: Work['grammars'] = { make: async (form) => answerGrammar(form) }

const folder = mkdtempSync(join(tmpdir(), 'states-'))
afterAll(() => rmSync(folder, { recursive: true }))

let own: Binding
let fallback: Binding

beforeAll(async () => {
  own = await loadModel(config, { steps: 0 })
  fallback = await loadModel(config, { steps: 0 }, () => undefined)
})

async function ask(
  model: Binding,
  text: string,
  signal = new AbortController().signal,
  more: Partial<GenerateRequest> = {},
): Promise<GenerateEvent[]> {
  const events: GenerateEvent[] = []
  const input = { kind: 'text', prompt: [text] } as const
  await answer(
    { model: 'tiny', input, maxTokens: 40, sampling: { temperature: 0 }, ...more },
    { model, renderer, grammars, progress: { steps: 0 }, tenant: '', background: false, signal },
    (event) => events.push(event),
  )
  return events
}
const textOf = (events: readonly GenerateEvent[]): string =>
  events.map((event) => (event.type === 'text' ? event.text : '')).join('')

const questions = [
  'Hello',
  'Who are you?',
  'What is a GGUF file?',
  'Count from 1 to 9',
  'What is 2 plus 3?',
  'Tell me a short story.',
  `Say the last of these words: ${'river stone cloud '.repeat(30)}`,
]

test('both ways to the model say the same, one after the other and side by side', async () => {
  const alone: string[] = []
  for (const question of questions) alone.push(textOf(await ask(own, question)))

  const together = await Promise.all(questions.map((question) => ask(own, question)))
  const publicly = await Promise.all(questions.map((question) => ask(fallback, question)))

  expect(alone[0]).toBe('Hello! How can I help you?')
  expect(together.map(textOf)).toEqual(alone)
  expect(publicly.map(textOf)).toEqual(alone)
  expect([own.parallel, fallback.parallel]).toEqual([4, 1])
}, 60_000)

test('both ways hold an answer to a grammar, and refuse one that native code refuses', async () => {
  const format = { type: 'grammar', source: 'root ::= ("Hello" | "Good day") [^.]{0,9} "."' } as const
  const signal = new AbortController().signal

  const texts = [own, fallback].map(async (model) => textOf(await ask(model, 'Hello', signal, { format })))

  const [text, publicly] = await Promise.all(texts)
  expect(text).toMatch(/^Hello[^.]{0,9}\.$/)
  expect(publicly).toBe(text)
  await expect(own.grammar('root ::= (')).rejects.toMatchObject({ code: 'invalid_request' })
})

test('a grammar holds where characters come in pieces, and words with a space in front', async () => {
  const noise = await loadModel({ ...config, modelPath: noiseModel }, { steps: 0 })
  const format = { type: 'grammar', source: 'root ::= "{ä" [😀-😂]{2} " of " [一-龠]{3} "\\n}"' } as const

  const text = textOf(await ask(noise, 'Hello', undefined, { format }))

  expect(text).toMatch(/^\{ä[😀-😂]{2} of [一-龠]{3}\n\}$/u)
})

test.each([
  { minTokens: 20 },
  { ignoreEos: true },
  { ignoreEos: true, dry: { strength: 2, allowedLength: 1 } },
  { minTokens: 30, repeatPenalty: 1.3, dry: { strength: 1, breakers: ['é', '\n'] } },
])('both ways sample alike with %j', async (options) => {
  const more = { sampling: { temperature: 0, ...options } }

  const [mine, theirs] = [
    await ask(own, 'Hello', undefined, more),
    await ask(fallback, 'Hello', undefined, more),
  ]

  expect(textOf(mine)).toBe(textOf(theirs))
  expect(textOf(mine).length).toBeGreaterThan('Hello! How can I help you?'.length)
})

test('where the inside is unknown, logprobs are refused by name', async () => {
  const asked = ask(fallback, 'Hello', undefined, { logprobs: 1 })

  await expect(asked).rejects.toMatchObject({ code: 'invalid_request', details: { param: 'logprobs' } })
})

test('over the public way, too, who leaves gets no end, and the next one an answer', async () => {
  const leaving = new AbortController()
  const left = ask(fallback, 'Tell me a long story.', leaving.signal)
  const next = ask(fallback, 'Hello')
  leaving.abort()

  expect((await left).some(({ type }) => type === 'end')).toBe(false)
  expect(textOf(await next)).toBe('Hello! How can I help you?')
})

test('answers and prompts have their numbers of threads, and a token that has to be repeatable always the same', async () => {
  const log: number[] = []
  const { decoder, sampler } = scripted({ setThreads: (threads: number) => log.push(threads) })
  const step = (tokens: number, repeatable: boolean) =>
    decoder?.decode([
      { sequence: 0, position: 0, tokens: Array<Token>(tokens).fill(1 as Token), sampler, repeatable },
    ])

  for (const [answers, prompts] of [
    [3, 7],
    [2, 4],
  ] as const) {
    decoder?.setThreads(answers, prompts)
    await step(1, false)
    await step(1, true)
    await step(5, false)
    await step(5, true)
  }

  expect(log).toEqual([3, 1, 7, 7, 2, 1, 4, 4])
})

test('a step that fails has not failed before its draws have ended: their samplers are freed then', async () => {
  vi.stubEnv('UV_THREADPOOL_SIZE', '1')
  vi.resetModules()
  const { openDecoder } = await import('./binding.ts')
  vi.unstubAllEnvs()
  const log: string[] = []
  const fails = {
    decodeBatch: () => Promise.reject(new Error('Eval has failed')),
    async sampleToken() {
      await delay(20)
      log.push('drawn')
      return 1
    },
  }
  const { decoder, sampler } = scripted(fails, openDecoder)

  const step = decoder?.decode([
    { sequence: 0, position: 0, tokens: [1 as Token], sampler, repeatable: false },
  ])

  await expect(step?.finally(() => log.push('failed'))).rejects.toThrow('Eval has failed')
  expect(log).toEqual(['drawn', 'failed'])
})

test('the odds of a prompt are looked at row by row, and what cannot be known is an error', async () => {
  let [inside, most, isBroken] = [0, 0, false]
  const asked: unknown[] = []
  const { decoder } = scripted({
    addToBatch: (_sequence: number, _position: number, _tokens: unknown, outputs: Uint32Array) => outputs,
    async sampleToken(output: number, _sampler: object, ...[, , logits]: unknown[]) {
      most = Math.max(most, ++inside)
      await delay(1)
      inside--
      if (isBroken) throw new Error('no logits')
      const [[token]] = logits as [[number]]
      asked.push([output, token])
      return [token, undefined, undefined, [token, -token, 99, 0], 1]
    },
  })
  const sampler = decoder?.sampler({ ...greedy, logprobs: 0 }, [])
  if (!decoder || !sampler) throw new Error('The inside of the library is not as it was.')
  const tokens = [4, 5, 6] as Token[]
  const step = () =>
    decoder.decode([
      {
        sequence: 0,
        position: 0,
        tokens,
        followers: { tokens: tokens.slice(1), sampler },
        repeatable: false,
      },
    ])

  expect(await step()).toEqual([undefined])
  expect(asked).toEqual([
    [0, 5],
    [1, 6],
  ])
  expect(most).toBe(1)
  expect(sampler.followerOdds?.map(({ logprob }) => logprob)).toEqual([-5, -6])
  isBroken = true
  expect(await step()).toEqual([expect.any(Error)])
})

const greedy = { temperature: 0, topK: 0, topP: 1, minP: 0, seed: 0, bias: [] }

/** Over an inside that does as it is told. */
function scripted(context: object, open = openDecoder) {
  class AddonSampler {
    applyConfig(): void {}
    dispose(): void {}
  }
  const _ctx = {
    initBatch() {},
    addToBatch: () => Uint32Array.of(0),
    async decodeBatch() {},
    sampleToken: async () => 1,
    removeTokenCellsFromSequence: () => true,
    getSequenceKvCacheMinPosition: () => 0,
    saveSequenceStateToFile: async () => 0,
    loadSequenceStateFromFile: async () => new Uint32Array(),
    setThreads() {},
    ...context,
  }
  const decoder = open(
    { _bindings: { AddonSampler } } as unknown as Llama,
    { _model: {}, fileInsights: {} } as unknown as LlamaModel,
    { _ctx, contextSize: 512, idealThreads: 1 } as unknown as LlamaContext,
    { parallel: 1, chunkSize: 64, chunksAtOnce: 1 },
  )
  return { decoder, sampler: decoder?.sampler(greedy, []) }
}

describe('how a context is kept', () => {
  test('as q8_0 and as q4_0 it takes less, by as much as its blocks do, and the model answers', async () => {
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

  test('a model whose heads are no whole blocks gets it as f16, and says so', async () => {
    const noise = { ...config, modelPath: noiseModel, modelName: 'noise:latest' }

    const plain = await loadModel(noise, { steps: 0 })
    const model = await loadModel({ ...noise, kvCacheType: 'q8_0' }, { steps: 0 })

    expect(model.sizeBytes).toBe(plain.sizeBytes)
    expect(model.notes).toEqual([
      'The model "noise:latest" cannot have a context in q8_0, and gets one in f16.',
    ])
    expect(textOf(await ask(model, 'Hello'))).toBe(textOf(await ask(plain, 'Hello')))
  }, 60_000)
})

test('chunks that are read at once leave the same behind as one after the other, to the last bit', async ({
  skip,
}) => {
  let decoder: Decoder | undefined
  await loadModel(config, { steps: 0 }, (...parts) => {
    decoder = openDecoder(...parts)
    return decoder
  })
  if (!decoder) throw new Error('The inside of the library is not as it was.')
  const { chunkSize, chunksAtOnce, decode, forget, save } = decoder
  skip(chunksAtOnce === 1, 'it reads one at once')
  const prompt = Array.from(
    { length: 5 * chunkSize - 9 },
    (_, index) => (20 + ((index * 7_919) % 300)) as Token,
  )
  const whole = prompt.slice(0, 4 * chunkSize)
  /** Of the whole chunks, after the prompt was read up to one after the other of these places. */
  const stateAfter = async (...ends: readonly number[]): Promise<Buffer> => {
    forget(0, 0)
    for (const [index, end] of ends.entries()) {
      const position = ends[index - 1] ?? 0
      await decode([{ sequence: 0, position, tokens: prompt.slice(position, end), repeatable: false }])
    }
    forget(0, whole.length)
    const file = join(folder, ends.join('-'))
    await save(0, whole, file)
    return readFile(file)
  }

  const oneByOne = await stateAfter(...[1, 2, 3, 4].map((chunks) => chunks * chunkSize))

  expect(oneByOne.length).toBeGreaterThan(whole.length * 100)
  expect(oneByOne.equals(await stateAfter(chunkSize * 2, chunkSize * 4))).toBe(true)
  expect(oneByOne.equals(await stateAfter(chunkSize, chunkSize * 3, prompt.length))).toBe(true)
})

test('with flash attention and without it the model answers', async () => {
  for (const flashAttention of [true, false]) {
    const model = await loadModel({ ...config, flashAttention }, { steps: 0 })
    expect(textOf(await ask(model, 'Hello'))).toBe('Hello! How can I help you?')
  }
}, 60_000)

test('without a graphics card it makes no difference how many layers are wanted for it', async ({ skip }) => {
  skip(own.gpuBytes > 0, 'there is one')
  for (const gpuLayers of ['max', 0, 65_536] as const) {
    const model = await loadModel({ ...config, gpuLayers }, { steps: 0 })
    expect(model).toMatchObject({ sizeBytes: own.sizeBytes, gpuBytes: 0 })
  }
}, 60_000)

describe('where memory is short', () => {
  const room = (free: number, total: number) => ({
    roomFor: async () => ({ free, total }),
    waitForRoom: async () => false,
  })
  const withFree = (free: number, total = free): Promise<Binding> =>
    loadModel(config, { steps: 0 }, undefined, room(free, total))

  test('there are fewer answers side by side, and the model says so', async () => {
    const model = await withFree(own.sizeBytes)

    expect(model.parallel).toBeLessThan(4)
    expect(model.parallel).toBeGreaterThan(1)
    expect(model).toMatchObject({ contextSize: 512, notes: [expect.stringContaining('not 4')] })
    expect(model.sizeBytes).toBeLessThan(own.sizeBytes * 0.8)
    expect(textOf(await ask(model, 'Hello'))).toBe('Hello! How can I help you?')
  })

  test('none is too few, now or ever; nothing of the weights is read', async () => {
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
