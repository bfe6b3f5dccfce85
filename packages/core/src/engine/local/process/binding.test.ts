import { setTimeout as delay } from 'node:timers/promises'
import { modelPath } from '@modelmount/tiny-model'
import type { Llama, LlamaContext, LlamaModel, Token } from 'node-llama-cpp'
import { beforeAll, expect, test, vi } from 'vitest'
import { renderChat } from '../../../template/jinja.ts'
import type { GenerateEvent } from '../../events.ts'
import { answer } from './answer.ts'
import { type Binding, loadModel, openDecoder } from './binding.ts'
import type { PromptRenderer } from './render.ts'

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
}
const renderer = {
  render: async (template, messages, reasoning) => renderChat(template, messages, reasoning),
} as Pick<PromptRenderer, 'render'> as PromptRenderer

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
): Promise<GenerateEvent[]> {
  const events: GenerateEvent[] = []
  const input = { kind: 'text', prompt: [text] } as const
  await answer(
    { model: 'tiny', input, maxTokens: 40, sampling: { temperature: 0 } },
    { model, renderer, progress: { steps: 0 }, tenant: '', background: false, signal },
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

test('over the public way, too, who leaves gets no end, and the next one an answer', async () => {
  const leaving = new AbortController()
  const left = ask(fallback, 'Tell me a long story.', leaving.signal)
  const next = ask(fallback, 'Hello')
  leaving.abort()

  expect((await left).some(({ type }) => type === 'end')).toBe(false)
  expect(textOf(await next)).toBe('Hello! How can I help you?')
})

test('a step of answers takes its own number of threads, unless it has to be repeatable', async () => {
  const log: number[] = []
  const { decoder, sampler } = scripted({ setThreads: (threads: number) => log.push(threads) })
  const step = (tokens: number, repeatable: boolean) =>
    decoder?.decode([
      { sequence: 0, position: 0, tokens: Array<Token>(tokens).fill(1 as Token), sampler, repeatable },
    ])

  decoder?.setThreads(3, 7)
  await step(1, false)
  await step(1, true)
  await step(5, false)
  decoder?.setThreads(1, 2)
  await step(1, false)

  expect(log).toEqual([3, 7, 7, 1])
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
    setThreads() {},
    ...context,
  }
  const decoder = open(
    { _bindings: { AddonSampler } } as unknown as Llama,
    { _model: {}, fileInsights: {} } as unknown as LlamaModel,
    { _ctx, contextSize: 512 } as unknown as LlamaContext,
    1,
  )
  return { decoder, sampler: new AddonSampler() }
}
