/** Several choices per prompt, and prompts of texts and token ids, in the OpenAI API. */
import type { GenerateRequest } from '@modelmount/core/engine'
import { type ScriptedChunk, scriptedEngine } from '@modelmount/core/testing'
import type OpenAI from 'openai'
import { expect, vi } from 'vitest'
import { chat, chunksOf, completionOf, eventsOf, expectError, finishOf, hello, json, soon } from './calls.ts'
import type { OpenAIRequirementId } from './requirements.ts'
import type { Check } from './suite.ts'

const complete = (url: string, body: object): Promise<Response> =>
  fetch(`${url}/v1/completions`, {
    method: 'POST',
    headers: json,
    body: JSON.stringify({ model: 'tiny', prompt: 'Once', ...body }),
  })
const textsOf = async (response: Response) => (await response.json()) as OpenAI.Completion

const seedOf = ({ sampling }: GenerateRequest): string => String(sampling?.seed)

/** A token with a logprob. */
const drawn = (text: string, logprob: number): ScriptedChunk => ({
  text,
  logprobs: [{ id: 1, text, bytes: [...Buffer.from(text)], logprob, top: [] }],
})

export const choices = {
  'openai:choices:chat': async (serve) => {
    const engine = scriptedEngine(seedOf)
    const url = await serve(engine)
    const alone = await completionOf(await chat(url, { ...hello, seed: 7 }))

    const { choices, usage } = await completionOf(await chat(url, { ...hello, seed: 7, n: 3 }))

    expect(choices.map(({ index, message }) => [index, message.content])).toEqual([
      [0, '7'],
      [1, '8'],
      [2, '9'],
    ])
    expect(usage?.prompt_tokens).toBe(alone.usage?.prompt_tokens)
    expect(usage?.completion_tokens).toBe(3 * (alone.usage?.completion_tokens ?? 0))
    await (await chat(url, { ...hello, n: 2 })).text()
    expect(engine.requests.slice(-2).map(({ sampling }) => sampling?.seed)).toEqual([undefined, 'random'])
  },

  'openai:choices:chat-stream': async (serve) => {
    const url = await serve(scriptedEngine((request) => [seedOf(request), ' is', ' it.']))
    const body = { ...hello, seed: 7, n: 8, stream: true, stream_options: { include_usage: true } }

    const chunks = await chunksOf(await chat(url, body))

    const parts = chunks.flatMap(({ choices }) => choices)
    const firstSeen = [...new Set(parts.map(({ index }) => index))]
    expect(firstSeen).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
    for (const index of firstSeen) {
      const own = parts.filter((part) => part.index === index)
      expect(own.map(({ delta }) => delta.content ?? '').join('')).toBe(`${7 + index} is it.`)
      expect(own.filter(({ delta }) => delta.role)).toEqual([own[0]])
      expect(own.filter(({ finish_reason }) => finish_reason)).toEqual([own.at(-1)])
    }
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1)
    const whole = await completionOf(await chat(url, { ...hello, seed: 7, n: 8 }))
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { ...whole.usage, prompt_tokens_details: {} } })
    expect(chunks.slice(0, -1).every(({ usage }) => usage === null)).toBe(true)
    expect(finishOf(chunks.at(-2) as OpenAI.ChatCompletionChunk)).toBe('stop')
  },

  'openai:choices:cancelled': async (serve) => {
    const engine = scriptedEngine(() => Array<string>(100_000).fill('a'))
    const url = await serve(engine)
    const client = new AbortController()

    const response = await chat(url, { ...hello, n: 3, stream: true }, {}, client.signal)
    await response.body?.getReader().read()
    await vi.waitFor(() => expect(engine.running).toBe(3), soon)
    client.abort()

    await vi.waitFor(() => expect(engine.running).toBe(0), soon)
  },

  'openai:choices:completions': async (serve) => {
    const url = await serve(scriptedEngine((request) => `${seedOf(request)}!`))
    const body = { prompt: ['a', 'b'], seed: 1, n: 2, echo: true }

    const { choices } = await textsOf(await complete(url, body))
    const events = await eventsOf(await complete(url, { ...body, stream: true }))

    const texts = ['a1!', 'a2!', 'b1!', 'b2!']
    expect(choices.map(({ text }) => text)).toEqual(texts)
    expect(choices.map(({ index }) => index)).toEqual([0, 1, 2, 3])
    expect(events.pop()).toBe('[DONE]')
    const parts = events.flatMap((data) => (JSON.parse(data) as OpenAI.Completion).choices)
    const joined = texts.map((_, index) =>
      parts.flatMap((part) => (part.index === index ? part.text : [])).join(''),
    )
    expect(joined).toEqual(texts)
    expect([...new Set(parts.map(({ index }) => index))]).toEqual([0, 1, 2, 3])
  },

  'openai:choices:best-of': async (serve) => {
    const engine = scriptedEngine((request) => {
      const logprobs = { 1: [-2, -1], 2: [-0.5, -0.5], 3: [-1], 4: [-3] }[seedOf(request)] ?? []
      return logprobs.map((logprob) => drawn(seedOf(request), logprob))
    })
    const url = await serve(engine)

    const { choices, usage } = await textsOf(await complete(url, { seed: 1, n: 2, best_of: 4 }))

    expect(choices.map(({ index, text, logprobs }) => [index, text, logprobs])).toEqual([
      [0, '22', null],
      [1, '3', null],
    ])
    expect(engine.requests.map(({ logprobs }) => logprobs)).toEqual([0, 0, 0, 0])
    expect(usage?.completion_tokens).toBe(6)
    const same = await textsOf(await complete(url, { seed: 1, n: 2, best_of: 2 }))
    expect(same.choices.map(({ text }) => text)).toEqual(['11', '22'])
    expect(engine.requests.at(-1)?.logprobs).toBeUndefined()
  },

  'openai:choices:bad-input': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    for (const [fields, param, code] of [
      [{ n: 0 }, 'n', 'integer_below_min_value'],
      [{ n: 9 }, 'n', 'integer_above_max_value'],
      [{ n: '2' }, 'n', 'invalid_type'],
    ] as const) {
      await expectError(await chat(url, { ...hello, ...fields }), 400, { param, code })
      await expectError(await complete(url, fields), 400, { param, code })
    }
    for (const [fields, param, code] of [
      [{ best_of: 9 }, 'best_of', 'integer_above_max_value'],
      [{ n: 3, best_of: 2 }, 'best_of', 'integer_below_min_value'],
      [{ n: 1, best_of: 2, stream: true }, 'best_of', 'invalid_value'],
      [{ n: 8, prompt: Array(257).fill('a') }, 'n', 'integer_above_max_value'],
      [{ logprobs: 21 }, 'logprobs', 'integer_above_max_value'],
    ] as const)
      await expectError(await complete(url, fields), 400, { param, code })
    expect(engine.requests).toEqual([])
  },

  'openai:completions:mixed-prompts': async (serve) => {
    const engine = scriptedEngine(' time')
    const url = await serve(engine)
    const prompts = async (prompt: unknown): Promise<readonly unknown[]> => {
      const earlier = engine.requests.length
      expect((await complete(url, { prompt })).status).toBe(200)
      return engine.requests.slice(earlier).map(({ input }) => (input.kind === 'text' ? input.prompt : input))
    }

    expect(await prompts([1, 2, 'Once', 3])).toEqual([[[1, 2], 'Once', [3]]])
    expect(await prompts(['a', [1, 2], ['b', 3]])).toEqual([['a'], [[1, 2]], ['b', [3]]])
    expect(await prompts([1, 2])).toEqual([[[1, 2]]])
    const echoed = await textsOf(await complete(url, { prompt: ['Once', [32, 117], 'pon'], echo: true }))
    expect(echoed.choices.map(({ text }) => text)).toEqual(['Once time', ' u time', 'pon time'])
    const mixed = await textsOf(await complete(url, { prompt: ['Once', 32, 117, 'pon'], echo: true }))
    expect(mixed.choices.map(({ text }) => text)).toEqual(['Once upon time'])
    for (const prompt of [[1, true], [['a', -1]], [[]], [1, 1.5], [{}]])
      expect((await complete(url, { prompt })).status).toBe(400)
  },
} satisfies Partial<Record<OpenAIRequirementId, Check>>
