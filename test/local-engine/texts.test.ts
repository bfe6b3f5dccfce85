/** Texts and templates that take long to process delay neither other answers nor the app. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createLlm, type Llm } from '@modelmount/core'
import type { GenerateRequest, Message } from '@modelmount/core/engine'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { callBudgetMs } from '../../packages/core/src/engine/local/model-process/workers/cpu-budget.ts'
import { forgedTemplate } from '../support/forgeries.ts'
import { noiseModel } from '../support/models.ts'

/** On an idle machine, the gap between two tokens is about 40 ms. The rest is a margin for busy machines. */
const longestGapMs = 1_000
const contextSize = 2_048
const modelProcessPath = fileURLToPath(new URL('./short-budget.mjs', import.meta.url))

const message = (text: string, role = 'user'): Message => ({ role, content: [{ type: 'text', text }] })
const chat = (...messages: Message[]) => ({ kind: 'chat', messages }) as const
const call = () => ({ signal: new AbortController().signal })

/** The longest time between two pieces of an answer that is generated while `work` runs, in ms. */
async function longestGapBeside(llm: Llm, model: string, work: () => Promise<unknown>): Promise<number> {
  const others = new AbortController()
  let gapMs = 0
  let pieces = 0
  let onFirst = (): void => {}
  const first = new Promise<void>((resolve) => {
    onFirst = resolve
  })
  const read = async (): Promise<void> => {
    while (!others.signal.aborted) {
      const request: GenerateRequest = {
        model,
        input: { kind: 'text', prompt: ['Hello'], template: false },
        maxTokens: 1_500,
      }
      let last: number | undefined
      for await (const event of await llm.generate(request, { signal: others.signal, stream: true })) {
        if (event.type !== 'text') continue
        const now = performance.now()
        if (last !== undefined) gapMs = Math.max(gapMs, now - last)
        last = now
        pieces++
        onFirst()
      }
    }
  }
  const reading = read()
  await first
  try {
    await work()
  } finally {
    others.abort()
    await reading
  }
  expect(pieces, 'pieces').toBeGreaterThan(1)
  return gapMs
}

describe('while an answer is generated', () => {
  let llm: Llm
  let processId: number | undefined

  beforeAll(async () => {
    llm = await createLlm({ models: noiseModel, local: { contextSize } })
    await llm.load('tiny-llama-spm.f16')
    processId = llm.loaded()[0]?.processId
  })

  afterAll(() => llm.close())

  const model = 'tiny-llama-spm.f16'
  const bare = (...prompt: (string | readonly number[])[]) =>
    ({ kind: 'text', prompt, template: false }) as const

  test.each<[what: string, input: () => GenerateRequest['input']]>([
    [
      '10,000 messages of 30 MB in total',
      () => chat(...Array.from({ length: 10_000 }, () => message('word '.repeat(600)))),
    ],
    ['10 MB of one letter', () => chat(message('a'.repeat(10_000_000)))],
    ['10 MB of emoji', () => chat(message('👩‍👩‍👧‍👦'.repeat(900_000)))],
    ['10 MB of spaces', () => chat(message(' '.repeat(10_000_000)))],
    ['10,000 texts', () => bare(...Array<string>(10_000).fill('a'.repeat(1_000)))],
    ['a million token ids', () => bare(Array<number>(1_000_000).fill(1_000))],
  ])(
    '%s are rejected as too long, and do not delay the answer',
    async (_what, input) => {
      const request = { model, input: input(), maxTokens: 2 }
      const refused = { code: 'context_length', details: { contextSize, inputTokens: expect.any(Number) } }

      const gapMs = await longestGapBeside(llm, model, async () => {
        const answer = llm.generate(request, call())
        await expect(answer).rejects.toMatchObject(refused)
        expect(await llm.countTokens(request, call())).toBeGreaterThan(2 * contextSize)
      })

      expect(gapMs).toBeLessThan(longestGapMs)
      expect(llm.loaded()[0]?.processId).toBe(processId)
    },
    60_000,
  )

  test('eight long texts at once are tokenized without delaying the answer', async () => {
    const request = { model, input: bare('some words and '.repeat(300_000)), maxTokens: 2 }

    const gapMs = await longestGapBeside(llm, model, () =>
      Promise.all(Array.from({ length: 8 }, () => llm.countTokens(request, call()))),
    )

    expect(gapMs).toBeLessThan(longestGapMs)
    expect(llm.loaded()[0]?.processId).toBe(processId)
  }, 60_000)
})

describe('a template', () => {
  let folder: string
  let llm: Llm

  /** Only the native template engine supports `pop` of lists. */
  const native = '{{ [1].pop() }}'
  const loop = (body: string): string =>
    `{% for i in range(999999) %}{% for j in range(999999) %}${body}{% endfor %}{% endfor %}`
  /** A template that renders each part only for the message of that name. */
  const forMessages = (parts: Readonly<Record<string, string>>): string =>
    Object.entries(parts)
      .map(([text, part]) => `{% if messages[0].content == "${text}" %}${part}{% endif %}`)
      .join('')
  const templates = {
    script: forMessages({
      'never ends': loop(''),
      'writes a gigabyte': loop('{{ "0123456789" * 1000 }}{{ "x" }}'),
      'doubles a text': `{% set ns = namespace(t="a") %}{% for i in range(40) %}{% set ns.t = ns.t ~ ns.t %}{% endfor %}{{ ns.t }}`,
      'calls itself': '{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}',
    }),
    native:
      native + forMessages({ 'never ends': loop(''), 'writes a gigabyte': loop('0123456789'.repeat(1_000)) }),
    nested: `{{ ${'('.repeat(20_000)}`,
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'templates-'))
    for (const [name, template] of Object.entries(templates))
      await writeFile(join(folder, `${name}.gguf`), forgedTemplate(template))
    llm = await createLlm({ models: folder, local: { contextSize, modelProcessPath } })
  })

  afterAll(async () => {
    await llm.close()
    await rm(folder, { recursive: true })
  })

  test.each<[what: string, model: keyof typeof templates, text: string, harmless?: string]>([
    ['that never ends', 'script', 'never ends', ''],
    ['that never ends in native code', 'native', 'never ends', '1'],
    ['that writes a gigabyte', 'script', 'writes a gigabyte', ''],
    ['that writes a gigabyte in native code', 'native', 'writes a gigabyte', '1'],
    ['that doubles a text', 'script', 'doubles a text', ''],
    ['that calls itself', 'script', 'calls itself', ''],
    ['that is deeply nested', 'nested', 'any'],
  ])(
    '%s is rejected, and a running answer continues',
    async (_what, model, text, harmless) => {
      await llm.load(model)
      const processIdOf = () => llm.loaded().find(({ name }) => name === `${model}:latest`)?.processId
      const processId = processIdOf()

      const gapMs = await longestGapBeside(llm, model, async () => {
        await expect(llm.chat(text, { model })).rejects.toMatchObject({
          code: 'invalid_request',
          message: expect.stringContaining('chat template'),
          details: { param: 'messages' },
        })
      })

      expect(gapMs).toBeLessThan(longestGapMs)
      if (harmless !== undefined)
        expect(await llm.render({ model, input: chat(message('Hello')) }, call())).toBe(harmless)
      expect(processId).toBeDefined()
      expect(processIdOf()).toBe(processId)
    },
    // The limit is CPU time, and rendering has a low priority beside the running answer.
    20 * callBudgetMs,
  )

  test('is not rendered for aborted calls', async () => {
    await writeFile(
      join(folder, 'slow.gguf'),
      forgedTemplate(`{% if messages[0].content == "slow" %}${loop('')}{% endif %}`),
    )
    const llm = await createLlm({ models: folder, local: { contextSize } })
    try {
      await llm.load('slow')
      const aborting = new AbortController()
      const input = { kind: 'chat', messages: [message('slow')] } as const
      const slow = [1, 2, 3].map(() => llm.render({ model: 'slow', input }, { signal: aborting.signal }))
      const ended = Promise.allSettled(slow)
      // When the model process has answered this call, it has received the earlier ones, too.
      await llm.render({ model: 'slow', input: { kind: 'text', prompt: ['x'], template: false } }, call())
      const startedAt = performance.now()
      aborting.abort()

      const quick = await llm.render({ model: 'slow', input: { kind: 'text', prompt: ['quick'] } }, call())

      expect(quick).toBe('')
      expect(performance.now() - startedAt).toBeLessThan(5_000)
      await ended
    } finally {
      await llm.close()
    }
  })
})
