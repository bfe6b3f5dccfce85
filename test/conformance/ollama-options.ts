/** Checks of options, reasoning and keep-alive in the Ollama API. */
import { scriptedEngine } from '@modelmount/core/testing'
import { expect } from 'vitest'
import { callOllama, expectOllamaError, hello, linesOf, said, wholeOf } from './calls.ts'
import {
  asked,
  chat,
  endOf,
  folderOf,
  generate,
  loader,
  mayLoad,
  plain,
  question,
  whole,
  withOptions,
} from './ollama-calls.ts'
import type { OllamaRequirementId } from './requirements.ts'
import type { Check } from './suite.ts'

export const options = {
  'ollama:think:by-default': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine, { models: folderOf({ 'plain.gguf': [plain, '2026-01-01'] }) })

    const thinks: unknown[] = []
    for (const body of [{}, { think: null }, { think: true }, { think: false }]) {
      thinks.push((await asked(url, engine, { ...hello, ...body })).reasoning)
      thinks.push((await asked(url, engine, { ...question, ...body })).reasoning)
    }

    expect(thinks).toEqual([true, true, true, true, true, true, false, false])
    expect((await asked(url, engine, { ...hello, model: 'plain' })).reasoning).toBeUndefined()
  },

  'ollama:think:levels': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    for (const think of ['low', 'medium', 'high', 'max'])
      for (const body of [hello, question]) {
        const { reasoning, input } = await asked(url, engine, { ...body, think })

        expect(reasoning).toBe(true)
        expect(input).toMatchObject({ templateOptions: { reasoning_effort: think } })
      }
  },

  'ollama:think:invalid': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    for (const think of ['maybe', 'High', '', 'true', 1, 0, [], {}])
      await expectOllamaError(
        await chat(url, { ...hello, think }),
        400,
        expect.stringMatching(
          /^(invalid think value: ".*" \(must be |think must be .*)"high", "medium", "low", "max", true, or false\)$/,
        ),
      )
  },

  'ollama:think:model-without-reasoning': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine, { models: folderOf({ 'plain.gguf': [plain, '2026-01-01'] }) })

    for (const think of [true, 'low']) {
      const more = { model: 'plain', think }
      await expectOllamaError(
        await chat(url, { ...hello, ...more }),
        400,
        '"plain" does not support thinking',
      )
      await expectOllamaError(
        await generate(url, { ...question, ...more }),
        400,
        '"plain" does not support thinking',
      )
    }
    expect(engine.requests).toEqual([])
    expect((await chat(url, { ...hello, model: 'plain', think: false })).status).toBe(200)
  },

  'ollama:options:defaults': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const defaults = {
      model: 'tiny',
      sampling: { temperature: 0.8, topK: 40, topP: 0.9, minP: 0 },
      reasoning: true,
      overflow: 'truncate',
      load: {},
    }

    for (const options of [undefined, {}])
      expect(await asked(url, engine, { ...hello, options })).toEqual({
        ...defaults,
        input: { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text: said }] }] },
      })
    expect(await asked(url, engine, question)).toEqual({
      ...defaults,
      input: { kind: 'text', prompt: ['Hello'] },
      returnTokens: true,
    })
  },

  'ollama:options:reach-the-model': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine, mayLoad)
    const options = {
      temperature: 0,
      top_k: 5,
      top_p: 0.5,
      min_p: 0.1,
      seed: 42,
      repeat_penalty: 1.1,
      repeat_last_n: -1,
      presence_penalty: -1.5,
      frequency_penalty: 1.5,
      stop: ['a', 'b'],
      num_predict: 100,
      num_ctx: 2_048,
      typical_p: 1,
    }

    for (const body of [
      { ...hello, options },
      { ...question, options },
    ])
      expect(await asked(url, engine, body)).toMatchObject({
        maxTokens: 100,
        stop: ['a', 'b'],
        sampling: {
          temperature: 0,
          topK: 5,
          topP: 0.5,
          minP: 0.1,
          seed: 42,
          repeatPenalty: 1.1,
          repeatLastN: -1,
          presencePenalty: -1.5,
          frequencyPenalty: 1.5,
        },
        load: { contextSize: 2_048 },
      })
  },

  'ollama:options:fractions': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine, mayLoad)
    const options = { num_predict: 5.9, top_k: 7.5, seed: 1.999, num_ctx: 2_048.7, repeat_last_n: -0.5 }

    expect(await asked(url, engine, withOptions({ ...options, num_gpu: 0.5, num_keep: 4.2 }))).toMatchObject({
      maxTokens: 5,
      sampling: { topK: 7, seed: 1, repeatLastN: expect.closeTo(0) },
      load: { contextSize: 2_048 },
    })
  },

  'ollama:options:null': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const names = ['temperature', 'top_k', 'top_p', 'min_p', 'seed', 'stop', 'num_predict', 'num_ctx']
    const more = ['repeat_penalty', 'repeat_last_n', 'presence_penalty', 'typical_p', 'num_gpu', 'use_mmap']

    const options = Object.fromEntries([...names, ...more].map((name) => [name, null]))

    expect(await asked(url, engine, withOptions(options))).toEqual(await asked(url, engine, whole({})))
  },

  'ollama:options:unknown': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const options = { mirostat: 2, tfs_z: 1, penalize_newline: true, low_vram: false, numa: {}, foo: [null] }

    expect(await asked(url, engine, withOptions(options))).toEqual(await asked(url, engine, whole({})))
  },

  'ollama:options:about-speed': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const options = {
      num_keep: 4,
      num_batch: 512,
      num_gpu: -1,
      main_gpu: 0,
      num_thread: 8,
      draft_num_predict: 4,
      use_mmap: true,
    }

    expect(await asked(url, engine, withOptions(options))).toEqual(await asked(url, engine, whole({})))
  },

  'ollama:options:wrong-types': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    for (const [name, value] of [
      ['temperature', '0.5'],
      ['num_predict', '5'],
      ['num_ctx', true],
      ['stop', 'a'],
      ['stop', [5]],
      ['use_mmap', 1],
      ['num_gpu', {}],
    ] as const)
      for (const path of ['chat', 'generate'] as const)
        await expectOllamaError(
          await callOllama(url, path, { ...hello, ...question, options: { [name]: value } }),
          400,
          expect.stringMatching(`^option "${name}" must be of `),
        )
    expect(engine.requests).toEqual([])
  },

  'ollama:options:num-predict': async (serve) => {
    const engine = scriptedEngine('one two three four')
    const url = await serve(engine)

    const cut = await wholeOf(await chat(url, withOptions({ num_predict: 2 })))
    const [, last] = endOf(await linesOf(await generate(url, { ...question, options: { num_predict: 1 } })))
    for (const num_predict of [-1, -2, -100])
      expect((await asked(url, engine, withOptions({ num_predict }))).maxTokens).toBe(2 ** 31 - 1)

    expect(cut).toMatchObject({ message: { content: 'one two' }, done_reason: 'length', eval_count: 2 })
    expect(last).toMatchObject({ done: true, done_reason: 'length', eval_count: 1 })
  },

  'ollama:options:num-predict-zero': async (serve) => {
    const { engine, told } = loader()
    const url = await serve(engine)
    const options = { num_predict: 0 }

    const chatted = await wholeOf(await chat(url, { ...hello, options }))
    const generated = await wholeOf(await generate(url, { ...question, options }))

    expect([chatted.done_reason, generated.done_reason]).toEqual(['load', 'load'])
    expect(told).toHaveLength(2)
    expect(engine.requests).toEqual([])
  },

  'ollama:options:stop': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    expect((await asked(url, engine, withOptions({ stop: ['\n', '', 'END'] }))).stop).toEqual(['\n', 'END'])
    for (const stop of [[''], ['', '']])
      expect(await asked(url, engine, withOptions({ stop }))).not.toHaveProperty('stop')
    // The empty list replaces the stop sequences of the model.
    expect((await asked(url, engine, withOptions({ stop: [] }))).stop).toEqual([])
  },

  'ollama:options:seed': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    for (const seed of [-1, -12_345, Number.MIN_SAFE_INTEGER])
      expect((await asked(url, engine, withOptions({ seed }))).sampling?.seed).toBe('random')
    for (const seed of [0, 42, Number.MAX_SAFE_INTEGER])
      expect((await asked(url, engine, withOptions({ seed }))).sampling?.seed).toBe(seed)
  },

  'ollama:options:num-ctx': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine, mayLoad)

    const sizes: unknown[] = []
    for (const num_ctx of [0, -1, 1, 4_096])
      sizes.push((await asked(url, engine, withOptions({ num_ctx }))).load?.contextSize)

    expect(sizes).toEqual([undefined, undefined, 16, 4_096])
  },

  'ollama:keep-alive:forms': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine, mayLoad)

    for (const [keep_alive, ms] of [
      [300, 300_000],
      [0.5, 500],
      [0, 0],
      ['0', 0],
      ['10m', 600_000],
      ['1h30m', 5_400_000],
      ['1.5h', 5_400_000],
      ['500ms', 500],
      ['24h', 86_400_000],
      [-1, 'forever'],
      [-0.5, 'forever'],
      ['-1s', 'forever'],
      ['-1m', 'forever'],
    ] as const)
      for (const body of [hello, question])
        expect((await asked(url, engine, { ...body, keep_alive })).load?.keepAlive).toBe(ms)
  },

  'ollama:keep-alive:absent': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    for (const body of [hello, { ...hello, keep_alive: null }])
      expect((await asked(url, engine, body)).load).toEqual({})
  },

  'ollama:keep-alive:invalid': async (serve) => {
    const { engine, told } = loader()
    const url = await serve(engine)

    for (const keep_alive of ['300', 'abc', '', '5 m', '5d', true, false, [], {}, '1'.repeat(100_000)])
      for (const body of [hello, { model: 'tiny' }])
        await expectOllamaError(
          await chat(url, { ...body, keep_alive }),
          400,
          expect.stringMatching(/^(time: |Unsupported type: )/),
        )
    expect([told, engine.requests]).toEqual([[], []])
  },

  'ollama:truncate:forms': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    const overflows: unknown[] = []
    for (const truncate of [undefined, null, true, false])
      overflows.push((await asked(url, engine, { ...hello, truncate, shift: false })).overflow)

    expect(overflows).toEqual(['truncate', 'truncate', 'truncate', 'error'])
  },
} satisfies Partial<Record<OllamaRequirementId, Check>>
