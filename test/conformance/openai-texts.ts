/** Checks of completions and embeddings in the OpenAI API. */
import { LlmError } from '@modelmount/core'
import type { EmbedRequest, Engine, GenerateRequest } from '@modelmount/core/engine'
import { type ScriptedChunk, type ScriptedEngine, scriptedEngine } from '@modelmount/core/testing'
import type OpenAI from 'openai'
import { expect, vi } from 'vitest'
import { eventsOf, expectError, json, promptOf, soon } from './calls.ts'
import type { OpenAIRequirementId } from './requirements.ts'
import type { Check } from './suite.ts'

const post = (path: 'completions' | 'embeddings') => (url: string, body: unknown) =>
  fetch(`${url}/v1/${path}`, { method: 'POST', headers: json, body: JSON.stringify(body) })
const complete = post('completions')
const embed = post('embeddings')
const once = { model: 'tiny', prompt: 'Once' }
const words = { model: 'tiny', input: 'fox' }

const completionOf = async (response: Response) => (await response.json()) as OpenAI.Completion
const embeddingsOf = async (response: Response) => (await response.json()) as OpenAI.CreateEmbeddingResponse
const vectorsOf = async (response: Response) =>
  (await embeddingsOf(response)).data.map(({ embedding }) => embedding)

async function chunksOf(response: Response): Promise<readonly OpenAI.Completion[]> {
  const events = await eventsOf(response)
  expect(events.pop()).toBe('[DONE]')
  return events.map((data) => JSON.parse(data) as OpenAI.Completion)
}

async function asked(url: string, engine: ScriptedEngine, fields: object): Promise<GenerateRequest> {
  const response = await complete(url, { ...once, ...fields })
  expect(response.status).toBe(200)
  await response.text()
  return engine.requests.at(-1) as GenerateRequest
}

const token = (text: string, logprob: number, bytes = [...Buffer.from(text)]) => ({
  id: 1,
  text,
  bytes,
  logprob,
})
const upon: ScriptedChunk = {
  text: ' upon',
  logprobs: [{ ...token(' upon', -0.5), top: [token(' upon', -0.5), token(' a', -1)] }],
}
const readOnce: ScriptedChunk = {
  prompt: [
    { ...token('On', 0), logprob: null, top: [] },
    { ...token('ce', -3), top: [token(' the', -1), token('ce', -3)] },
  ],
}
/** A character that consists of two tokens. */
const fox: ScriptedChunk = {
  text: '🦊!',
  logprobs: [
    { ...token('\uFFFD', -2, [0xf0, 0x9f]), top: [token('\uFFFD', -1, [0xf0, 0x9f]), token('!', -4)] },
    { ...token('\uFFFD', -0.1, [0xa6, 0x8a]), top: [] },
    { ...token('!', -0.2), top: [] },
  ],
}

/** An engine that records embedding requests, and fails with the error that `answer` returns. */
function embedding(answer: (request: EmbedRequest) => LlmError | undefined): {
  engine: Engine
  requests: EmbedRequest[]
} {
  const scripted = scriptedEngine('')
  const requests: EmbedRequest[] = []
  const engine: Engine = {
    ...scripted,
    embed: async (request, call) => {
      requests.push(request)
      const error = answer(request)
      if (error) throw error
      return scripted.embed(request, call)
    },
  }
  return { engine, requests }
}

export const texts = {
  'openai:completions:whole-shape': async (serve) => {
    const url = await serve(scriptedEngine(' upon a time'))

    const response = await complete(url, once)

    expect(response.status).toBe(200)
    const answer = await completionOf(response)
    expect(answer).toEqual({
      id: expect.stringMatching(/^cmpl-.+/),
      object: 'text_completion',
      created: expect.any(Number),
      model: 'tiny',
      system_fingerprint: 'fp_scripted',
      choices: [{ text: ' upon a time', index: 0, logprobs: null, finish_reason: 'stop' }],
      usage: expect.objectContaining({ prompt_tokens: 1, completion_tokens: 3, total_tokens: 4 }),
    })
    expect(Math.abs(answer.created - Date.now() / 1000)).toBeLessThan(5)
  },

  'openai:completions:bare-prompt': async (serve) => {
    const engine = scriptedEngine('Hello.')
    const url = await serve(engine)

    expect(await asked(url, engine, {})).toEqual({
      model: 'tiny',
      input: { kind: 'text', prompt: ['Once'], template: false },
      maxTokens: 16,
      sampling: { temperature: 1, topP: 1 },
    })
  },

  'openai:completions:max-tokens': async (serve) => {
    const engine = scriptedEngine('word '.repeat(30))
    const url = await serve(engine)

    const short = await completionOf(await complete(url, once))

    expect(short.choices[0]?.finish_reason).toBe('length')
    expect(short.usage?.completion_tokens).toBe(16)
    expect((await asked(url, engine, { max_tokens: null })).maxTokens).toBe(16)
    expect((await asked(url, engine, { max_tokens: 20 })).maxTokens).toBe(20)
    expect(await asked(url, engine, { max_tokens: -1 })).not.toHaveProperty('maxTokens')
    const none = await complete(url, { ...once, max_tokens: 0 })
    await expectError(none, 400, { param: 'max_tokens', code: 'integer_below_min_value' })
  },

  'openai:completions:prompt-forms': async (serve) => {
    const engine = scriptedEngine('Hello.')
    const url = await serve(engine)

    const prompts: unknown[] = []
    for (const prompt of ['a', ['a', 'b'], [5, 6], [[5], [6, 7]], ['a', [5]]]) {
      const before = engine.requests.length
      await asked(url, engine, { prompt })
      // Concurrent prompts have no fixed order.
      prompts.push(
        engine.requests
          .slice(before)
          .map(({ input }) => JSON.stringify('prompt' in input && input.prompt))
          .sort(),
      )
    }

    expect(prompts).toEqual([
      ['["a"]'],
      ['["a"]', '["b"]'],
      ['[[5,6]]'],
      ['[[5]]', '[[6,7]]'],
      ['["a"]', '[[5]]'],
    ])
  },

  'openai:completions:several-prompts': async (serve) => {
    const url = await serve(scriptedEngine((request) => [`${promptOf(request)}!`, '?']))
    const both = { ...once, prompt: ['a', 'b'] }

    const whole = await completionOf(await complete(url, both))
    const chunks = await chunksOf(
      await complete(url, { ...both, stream: true, stream_options: { include_usage: true } }),
    )

    expect(whole.choices.map(({ index, text }) => [index, text])).toEqual([
      [0, 'a!?'],
      [1, 'b!?'],
    ])
    expect(whole.usage).toMatchObject({ prompt_tokens: 2, completion_tokens: 4, total_tokens: 6 })
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1)
    const choices = chunks.flatMap((chunk) => chunk.choices)
    expect(choices.map(({ index, text, finish_reason }) => [index, text, finish_reason])).toEqual([
      [0, 'a!', null],
      [0, '?', null],
      [0, '', 'stop'],
      [1, 'b!', null],
      [1, '?', null],
      [1, '', 'stop'],
    ])
    expect(chunks.at(-1)?.usage).toEqual(whole.usage)
  },

  'openai:completions:concurrent-prompts': async (serve) => {
    let most = 0
    const engine = scriptedEngine(async (request) => {
      most = Math.max(most, engine.running)
      await vi.waitFor(() => expect(engine.requests.length).toBeGreaterThan(3), soon)
      return `${promptOf(request)}!`
    })
    const slow = scriptedEngine(
      (request) => (promptOf(request) === 'Fail' ? new LlmError('upstream', 'It has ended.') : 'Hello.'),
      { delayMs: 60_000 },
    )
    const prompt = ['a', 'b', 'c', 'd', 'e', 'f']

    const whole = await completionOf(await complete(await serve(engine), { ...once, prompt }))
    const failed = await complete(await serve(slow), { ...once, prompt: ['a', 'b', 'Fail', ...prompt] })

    expect(whole.choices.map(({ index, text }) => [index, text])).toEqual(
      prompt.map((text, index) => [index, `${text}!`]),
    )
    expect(whole.usage).toMatchObject({ prompt_tokens: 6, completion_tokens: 6 })
    expect(most).toBe(4)
    await expectError(failed, 500, {
      message: 'It has ended.',
      type: 'server_error',
      param: null,
      code: null,
    })
    await expect.poll(() => slow.running, soon).toBe(0)
    expect(slow.requests.length).toBeLessThan(5)
  },

  'openai:completions:stream': async (serve) => {
    const url = await serve(scriptedEngine(' upon a time'))

    const response = await complete(url, {
      ...once,
      stream: true,
      max_tokens: 2,
      stream_options: { include_usage: true },
    })
    const plain = await chunksOf(await complete(url, { ...once, stream: true }))

    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/)
    const chunks = await chunksOf(response)
    for (const chunk of chunks) expect(chunk).toMatchObject({ object: 'text_completion', model: 'tiny' })
    expect(chunks.map(({ choices, usage }) => [choices[0]?.text, choices[0]?.finish_reason, usage])).toEqual([
      [' upon', null, null],
      [' a', null, null],
      ['', 'length', null],
      [undefined, undefined, expect.objectContaining({ prompt_tokens: 1, completion_tokens: 2 })],
    ])
    for (const chunk of plain) expect(chunk).not.toHaveProperty('usage')
  },

  'openai:completions:echo': async (serve) => {
    const url = await serve(scriptedEngine(' upon'))
    const tokens = [...'Once'].map((letter) => letter.codePointAt(0))

    for (const prompt of ['Once', tokens]) {
      const whole = await completionOf(await complete(url, { ...once, prompt, echo: true }))
      const chunks = await chunksOf(await complete(url, { ...once, prompt, echo: true, stream: true }))

      expect(whole.choices[0]?.text).toBe('Once upon')
      expect(chunks.map(({ choices }) => choices[0]?.text)).toEqual(['Once', ' upon', ''])
    }
  },

  'openai:completions:echo-logprobs': async (serve) => {
    const engine = scriptedEngine([readOnce, upon])
    const url = await serve(engine)
    const body = { ...once, echo: true, logprobs: 1 }
    const promptPart = {
      tokens: ['On', 'ce'],
      token_logprobs: [null, -3],
      top_logprobs: [null, { ' the': -1, ce: -3 }],
      text_offset: [0, 2],
    }

    const whole = await completionOf(await complete(url, body))
    const scored = await completionOf(await complete(url, { ...body, max_tokens: 0 }))
    const chunks = await chunksOf(await complete(url, { ...body, stream: true }))
    const echoed = await completionOf(await complete(url, { ...once, echo: true, max_tokens: 0 }))

    expect(whole.choices[0]).toMatchObject({
      text: 'Once upon',
      logprobs: {
        tokens: ['On', 'ce', ' upon'],
        token_logprobs: [null, -3, -0.5],
        top_logprobs: [null, { ' the': -1, ce: -3 }, { ' upon': -0.5 }],
        text_offset: [0, 2, 4],
      },
    })
    expect(scored.choices).toEqual([
      { text: 'Once', index: 0, logprobs: promptPart, finish_reason: 'length' },
    ])
    expect(scored.usage).toMatchObject({ prompt_tokens: 1, completion_tokens: 0, total_tokens: 1 })
    expect(chunks.map(({ choices: [choice] }) => [choice?.text, choice?.logprobs])).toEqual([
      ['Once', null],
      ['', promptPart],
      [' upon', expect.objectContaining({ tokens: [' upon'], text_offset: [4] })],
      ['', null],
    ])
    expect(echoed.choices[0]).toMatchObject({ text: 'Once', logprobs: null, finish_reason: 'length' })
    expect(engine.requests.map(({ maxTokens, promptLogprobs }) => [maxTokens, promptLogprobs])).toEqual([
      [16, true],
      [0, true],
      [16, true],
      [0, undefined],
    ])
  },

  'openai:completions:suffix': async (serve) => {
    const engine = scriptedEngine(' upon a')
    const url = await serve(engine)

    const infill = await asked(url, engine, { suffix: ' time' })
    const plain = await asked(url, engine, { suffix: '' })

    expect(infill.input).toEqual({ kind: 'infill', prefix: 'Once', suffix: ' time' })
    expect(plain.input.kind).toBe('text')
    const tokens = await complete(url, { ...once, prompt: [5], suffix: ' time' })
    await expectError(tokens, 400, { param: 'prompt', code: 'invalid_type' })
  },

  'openai:completions:logprobs': async (serve) => {
    const engine = scriptedEngine([upon, fox])
    const url = await serve(engine)

    const whole = await completionOf(await complete(url, { ...once, logprobs: 2 }))
    const chunks = await chunksOf(await complete(url, { ...once, logprobs: 2, stream: true }))
    await complete(url, { ...once, logprobs: 0 })

    expect(whole.choices[0]?.logprobs).toEqual({
      tokens: [' upon', '\uFFFD', '\uFFFD', '!'],
      token_logprobs: [-0.5, -2, -0.1, -0.2],
      top_logprobs: [
        { ' upon': -0.5, ' a': -1 },
        { '\uFFFD': -1, '!': -4 },
        { '\uFFFD': -0.1 },
        { '!': -0.2 },
      ],
      text_offset: [0, 5, 5, 6],
    })
    expect(chunks.map(({ choices }) => choices[0]?.logprobs?.text_offset)).toEqual([
      [0],
      [5, 5, 6],
      undefined,
    ])
    expect(engine.requests.map(({ logprobs }) => logprobs)).toEqual([2, 2, 0])
  },

  'openai:completions:errors': async (serve) => {
    const failure = new LlmError('upstream', 'The model process has ended.')
    const url = await serve(
      scriptedEngine((request) => (promptOf(request) === 'Fail' ? ['Once', failure] : 'Hello.')),
    )

    const unknown = await serve(scriptedEngine(new LlmError('not_found', 'No.', { param: 'model' })))
    const whole = await complete(url, { ...once, prompt: ['a', 'Fail'] })
    const streamed = await complete(url, { ...once, prompt: ['a', 'Fail'], stream: true })

    for (const stream of [false, true])
      await expectError(await complete(unknown, { ...once, stream }), 404, {
        message: 'No.',
        code: 'model_not_found',
      })
    const error = { message: 'The model process has ended.', type: 'server_error', param: null, code: null }
    await expectError(whole, 500, error)
    expect(streamed.status).toBe(200)
    expect(JSON.parse((await eventsOf(streamed)).at(-1) as string)).toEqual({ error })
  },

  'openai:completions:bad-input': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    for (const [fields, param, code] of [
      [{ prompt: undefined }, 'prompt', 'missing_required_parameter'],
      [{ prompt: null }, 'prompt', 'invalid_type'],
      [{ prompt: 5 }, 'prompt', 'invalid_type'],
      [{ prompt: [] }, 'prompt', 'empty_array'],
      [{ prompt: [[]] }, 'prompt[0]', 'empty_array'],
      [{ prompt: ['a', null] }, 'prompt[1]', 'invalid_type'],
      [{ prompt: [1.5] }, 'prompt[0]', 'invalid_type'],
      [{ prompt: Array(2_049).fill('a') }, 'prompt', 'array_above_max_length'],
      [{ model: undefined }, 'model', 'missing_required_parameter'],
      [{ max_tokens: 'a' }, 'max_tokens', 'invalid_type'],
      [{ max_tokens: -2 }, 'max_tokens', 'integer_below_min_value'],
      [{ logprobs: true }, 'logprobs', 'invalid_type'],
      [{ logprobs: 21 }, 'logprobs', 'integer_above_max_value'],
      [{ logprobs: -1 }, 'logprobs', 'integer_below_min_value'],
      [{ echo: 1 }, 'echo', 'invalid_type'],
      [{ echo: true, logprobs: 1, suffix: '.' }, 'echo', 'unsupported_parameter'],
      [{ max_tokens: 0 }, 'max_tokens', 'integer_below_min_value'],
      [{ max_tokens: 0, echo: false }, 'max_tokens', 'integer_below_min_value'],
      [{ suffix: 5 }, 'suffix', 'invalid_type'],
      [{ temperature: 3 }, 'temperature', 'decimal_above_max_value'],
      [{ stream: 'yes' }, 'stream', 'invalid_type'],
    ] as const)
      await expectError(await complete(url, { ...once, ...fields }), 400, { param, code })

    expect(engine.requests).toEqual([])
  },

  'openai:embeddings:shape': async (serve) => {
    const url = await serve(scriptedEngine(''))

    const response = await embed(url, { ...words, input: ['fox', 'dog', 'fox'] })

    expect(response.status).toBe(200)
    const answer = await embeddingsOf(response)
    expect(answer).toEqual({
      object: 'list',
      data: [0, 1, 2].map((index) => ({ object: 'embedding', index, embedding: expect.any(Array) })),
      model: 'tiny',
      usage: { prompt_tokens: 9, total_tokens: 9 },
    })
    const [first, second, third] = answer.data.map(({ embedding }) => embedding)
    expect(first).toHaveLength(8)
    expect(Math.hypot(...(first as number[]))).toBeCloseTo(1, 5)
    expect(third).toEqual(first)
    expect(second).not.toEqual(first)
  },

  'openai:embeddings:input-forms': async (serve) => {
    const { engine, requests } = embedding(() => undefined)
    const url = await serve(engine)

    for (const input of ['fox', ['fox', 'dog'], [102, 111], [[102], [111, 120]]])
      expect((await embed(url, { ...words, input })).status).toBe(200)

    expect(requests.map(({ inputs }) => inputs)).toEqual([
      ['fox'],
      ['fox', 'dog'],
      [[102, 111]],
      [[102], [111, 120]],
    ])
    const [text] = await vectorsOf(await embed(url, words))
    const [tokens] = await vectorsOf(
      await embed(url, { ...words, input: [...'fox'].map((letter) => letter.codePointAt(0)) }),
    )
    expect(tokens).toEqual(text)
  },

  'openai:embeddings:base64': async (serve) => {
    const url = await serve(scriptedEngine(''))

    const [floats] = await vectorsOf(await embed(url, { ...words, encoding_format: 'float' }))
    const [text] = (await vectorsOf(await embed(url, { ...words, encoding_format: 'base64' }))) as unknown[]

    const bytes = Buffer.from(text as string, 'base64')
    expect(bytes.toString('base64')).toBe(text)
    expect(bytes).toHaveLength(32)
    for (const [index, value] of (floats as number[]).entries())
      expect(bytes.readFloatLE(index * 4)).toBeCloseTo(value, 6)
  },

  'openai:embeddings:dimensions': async (serve) => {
    const url = await serve(scriptedEngine(''))

    const [short] = await vectorsOf(await embed(url, { ...words, dimensions: 3 }))
    const [whole] = await vectorsOf(await embed(url, { ...words, dimensions: 8 }))

    expect(short).toHaveLength(3)
    expect(Math.hypot(...(short as number[]))).toBeCloseTo(1, 5)
    expect(whole).toHaveLength(8)
    await expectError(await embed(url, { ...words, dimensions: 9 }), 400, {
      param: 'dimensions',
      code: 'integer_above_max_value',
    })
  },

  'openai:embeddings:errors': async (serve) => {
    const tooLong = new LlmError('context_length', 'Too long.', { inputTokens: 600, contextSize: 512 })
    const { engine } = embedding(({ model, inputs }) => {
      if (model === 'nope') return new LlmError('not_found', 'No.', { param: 'model' })
      if (model === 'chat') return new LlmError('invalid_request', 'It makes none.', { param: 'model' })
      return inputs.includes('long') ? tooLong : undefined
    })
    const url = await serve(engine)

    await expectError(await embed(url, { ...words, model: 'nope' }), 404, { code: 'model_not_found' })
    await expectError(await embed(url, { ...words, model: 'chat' }), 400, { param: 'model' })
    await expectError(await embed(url, { ...words, input: ['fox', 'long'] }), 400, {
      message: expect.stringContaining("This model's maximum context length is 512 tokens."),
      code: 'context_length_exceeded',
    })
  },

  'openai:embeddings:bad-input': async (serve) => {
    const { engine, requests } = embedding(() => undefined)
    const url = await serve(engine)

    for (const [fields, param, code] of [
      [{ input: undefined }, 'input', 'missing_required_parameter'],
      [{ input: null }, 'input', 'invalid_type'],
      [{ input: 5 }, 'input', 'invalid_type'],
      [{ input: {} }, 'input', 'invalid_type'],
      [{ input: '' }, 'input', 'invalid_value'],
      [{ input: [] }, 'input', 'empty_array'],
      [{ input: [''] }, 'input[0]', 'invalid_value'],
      [{ input: [[]] }, 'input[0]', 'empty_array'],
      [{ input: ['fox', 5] }, 'input[1]', 'invalid_type'],
      [{ input: [5, 'fox'] }, 'input[0]', 'invalid_type'],
      [{ input: [-1] }, 'input[0]', 'invalid_type'],
      [{ input: Array(2_049).fill('a') }, 'input', 'array_above_max_length'],
      [{ model: undefined }, 'model', 'missing_required_parameter'],
      [{ dimensions: 0 }, 'dimensions', 'integer_below_min_value'],
      [{ dimensions: 1.5 }, 'dimensions', 'invalid_type'],
      [{ encoding_format: 'hex' }, 'encoding_format', 'invalid_value'],
      [{ encoding_format: 5 }, 'encoding_format', 'invalid_type'],
    ] as const)
      await expectError(await embed(url, { ...words, ...fields }), 400, { param, code })

    expect(requests).toEqual([])
  },

  'openai:embeddings:many': async (serve) => {
    const url = await serve(scriptedEngine(''))

    const vectors = await vectorsOf(
      await embed(url, {
        ...words,
        user: 'ann',
        input: Array.from({ length: 2_048 }, (_, n) => `word ${n}`),
      }),
    )

    expect(vectors).toHaveLength(2_048)
  },
} satisfies Partial<Record<OpenAIRequirementId, Check>>
