/** Checks of tools, formats, logprobs and infill in the Ollama API. */
import { LlmError } from '@modelmount/core'
import { type SampledToken, toTemplateMessages } from '@modelmount/core/engine'
import { scriptedEngine } from '@modelmount/core/testing'
import { expect } from 'vitest'
import { gapModel } from '../support/made-models.ts'
import { expectOllamaError, hello, linesOf, wholeOf } from './calls.ts'
import {
  asked,
  chat,
  endOf,
  firstKeys,
  folderOf,
  generate,
  plain,
  question,
  saying,
  statistics,
  whole,
} from './ollama-calls.ts'
import type { OllamaRequirementId } from './requirements.ts'
import type { Check } from './suite.ts'

const parameters = {
  type: 'object',
  properties: { city: { type: 'string', minLength: 1 } },
  required: ['city'],
}
const weather = { type: 'function', function: { name: 'weather', description: 'By city.', parameters } }
const now = { type: 'function', function: { name: 'now' } }
const tools = [weather, now]

/** Script with a text and two tool calls. The arguments of the second call come in pieces. */
const calling = [
  'Wait.',
  { call: 'weather', id: 'call_a', arguments: { city: 'Paris', at: [1.5, null] } },
  { call: 'weather', id: 'call_b', arguments: ['{"city":', ' "Łódź"', '}'] },
]
const calls = [
  { id: 'call_a', function: { index: 0, name: 'weather', arguments: { city: 'Paris', at: [1.5, null] } } },
  { id: 'call_b', function: { index: 1, name: 'weather', arguments: { city: 'Łódź' } } },
]

const schema = { type: 'object', properties: { b: { type: 'string' }, a: { type: 'integer' } } }

const token = (text: string, logprob: number) => ({ id: 1, text, bytes: [...Buffer.from(text)], logprob })
const drawn = (text: string): SampledToken => ({
  ...token(text, -0.25),
  top: [token('é', -0.125), token(text, -0.25)],
})
const tokens = [
  { reasoning: 'Hm', logprobs: [drawn('Hm')] },
  { text: 'Hel', logprobs: [drawn('Hel')] },
  { text: 'lo!', logprobs: [drawn('lo'), drawn('!')] },
]
const told = (text: string) => ({ token: text, logprob: -0.25, bytes: [...Buffer.from(text)] })

export const tooling = {
  'ollama:tools:reach-the-model': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    const { input } = await asked(url, engine, { ...hello, tools })
    const none = await asked(url, engine, { ...hello, tools: [] })

    expect(input).toMatchObject({
      tools: [
        { name: 'weather', description: 'By city.', parameters },
        { name: 'now', parameters: { type: 'object' } },
      ],
    })
    expect(none).toEqual(await asked(url, engine, hello))
  },

  'ollama:tools:streamed': async (serve) => {
    const url = await serve(scriptedEngine(calling))

    const [before, last] = endOf(await linesOf(await chat(url, { ...hello, tools })))

    expect(before.map(({ message, done }) => [done, message])).toEqual([
      [false, { role: 'assistant', content: 'Wait.' }],
      [false, { role: 'assistant', content: '', tool_calls: [calls[0]] }],
      [false, { role: 'assistant', content: '', tool_calls: [calls[1]] }],
    ])
    expect(last).toMatchObject({
      message: { role: 'assistant', content: '' },
      done: true,
      done_reason: 'stop',
      eval_count: 5,
    })
    expect(last.message).not.toHaveProperty('tool_calls')
  },

  'ollama:tools:whole': async (serve) => {
    const url = await serve(scriptedEngine([{ reasoning: 'Hm.' }, ...calling]))

    const { message, done_reason } = await wholeOf(await chat(url, whole({ tools })))

    expect(message).toEqual({ role: 'assistant', content: 'Wait.', thinking: 'Hm.', tool_calls: calls })
    expect(done_reason).toBe('stop')
  },

  'ollama:tools:incomplete-call': async (serve) => {
    const url = await serve(scriptedEngine(calling))
    const short = { ...hello, tools, options: { num_predict: 3 } }

    const lines = await linesOf(await chat(url, short))
    const answer = await wholeOf(await chat(url, { ...short, stream: false }))

    expect(lines.flatMap(({ message }) => message.tool_calls ?? [])).toEqual(calls.slice(0, 1))
    expect(answer.message.tool_calls).toEqual(calls.slice(0, 1))
    expect([lines.at(-1)?.done_reason, answer.done_reason]).toEqual(['length', 'length'])
  },

  'ollama:tools:history': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const call = (city: string) => ({ function: { name: 'weather', arguments: { city } } })

    const { input } = await asked(
      url,
      engine,
      saying(
        { role: 'user', content: 'What is it like?' },
        { role: 'assistant', content: '', tool_calls: [call('Paris'), call('Łódź')] },
        { role: 'tool', content: 'sunny', tool_name: 'weather' },
        { role: 'Tool', content: 'rain' },
      ),
    )

    expect(toTemplateMessages(input).slice(1)).toEqual([
      {
        role: 'assistant',
        content: [
          { type: 'tool-call', id: 'call_0', name: 'weather', arguments: '{"city":"Paris"}' },
          { type: 'tool-call', id: 'call_1', name: 'weather', arguments: '{"city":"Łódź"}' },
        ],
      },
      ...['sunny', 'rain'].map((text, index) => ({
        role: 'tool',
        content: [
          { type: 'tool-result', id: `call_${index}`, name: 'weather', content: [{ type: 'text', text }] },
        ],
      })),
    ])
  },

  'ollama:tools:round-trip': async (serve) => {
    const engine = scriptedEngine(({ input }) =>
      toTemplateMessages(input).at(-1)?.role === 'tool' ? 'It is sunny.' : calling,
    )
    const url = await serve(engine)

    const { message } = await wholeOf(await chat(url, whole({ tools })))
    const result = (id: string) => ({ role: 'tool', content: 'sunny', tool_call_id: id })
    const messages = [...hello.messages, message, result('call_b'), result('call_a')]
    const answer = await wholeOf(await chat(url, whole({ tools, messages })))

    expect(answer.message).toEqual({ role: 'assistant', content: 'It is sunny.' })
    const parts = toTemplateMessages(engine.requests.at(-1)?.input as never).flatMap(({ content }) => content)
    expect(parts.flatMap((part) => ('id' in part ? [`${part.type} ${part.id}`] : []))).toEqual([
      'tool-call call_a',
      'tool-call call_b',
      'tool-result call_b',
      'tool-result call_a',
    ])
  },

  'ollama:tools:model-without-tools': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine, { models: folderOf({ 'plain.gguf': [plain, '2026-01-01'] }) })
    const body = { ...hello, model: 'plain' }

    await expectOllamaError(
      await chat(url, { ...body, tools }),
      400,
      'registry.ollama.ai/library/plain:latest does not support tools',
    )

    expect(engine.requests).toEqual([])
    expect((await chat(url, { ...body, tools: [] })).status).toBe(200)
  },

  'ollama:format:forms': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    for (const body of [hello, question]) {
      expect((await asked(url, engine, { ...body, format: 'json' })).format).toEqual({ type: 'json' })
      expect((await asked(url, engine, { ...body, format: schema })).format).toEqual({
        type: 'json-schema',
        schema,
      })
      for (const format of ['', null])
        expect(await asked(url, engine, { ...body, format })).toEqual(await asked(url, engine, body))
    }
    expect((await asked(url, engine, { ...hello, tools, format: 'json' })).format).toEqual({ type: 'json' })
    const given = (await asked(url, engine, { ...hello, format: schema })).format
    expect(JSON.stringify(given)).toContain('{"b":{"type":"string"},"a":')
  },

  'ollama:format:invalid': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    for (const format of ['xml', 'JSON', 5, true, [], ['json']])
      for (const ask of [chat, generate])
        await expectOllamaError(
          await ask(url, { ...hello, ...question, format }),
          400,
          expect.stringMatching(/^invalid format: .*; expected "json" or a valid JSON Schema object$/),
        )
    expect(engine.requests).toEqual([])
  },

  'ollama:format:engine-errors': async (serve) => {
    for (const [param, field] of [
      ['format.schema#/not', 'format'],
      ['tools[0].parameters#/not', 'tools[0].function.parameters'],
    ] as const) {
      const url = await serve(scriptedEngine(new LlmError('invalid_request', 'No.', { param })))

      for (const stream of [false, true])
        await expectOllamaError(
          await chat(url, { ...hello, tools, format: schema, stream }),
          400,
          `invalid ${field}: No.`,
        )
    }
  },

  'ollama:logprobs:streamed': async (serve) => {
    const url = await serve(scriptedEngine(tokens))

    const lines = await linesOf(await chat(url, { ...hello, logprobs: true }))

    const [before, last] = endOf(lines)
    expect(before.map(({ logprobs }) => logprobs)).toEqual([
      [told('Hm')],
      [told('Hel')],
      [told('lo'), told('!')],
    ])
    expect(Object.keys(before[0] ?? {})).toEqual([...firstKeys, 'message', 'done', 'logprobs'])
    expect(last).not.toHaveProperty('logprobs')
  },

  'ollama:logprobs:whole': async (serve) => {
    const url = await serve(scriptedEngine(tokens))
    const body = { ...question, stream: false, logprobs: true }

    const answer = await wholeOf(await generate(url, body))
    const best = await wholeOf(await generate(url, { ...body, top_logprobs: 1 }))

    expect(answer.logprobs).toEqual(['Hm', 'Hel', 'lo', '!'].map(told))
    expect(Object.keys(answer)).toEqual(expect.arrayContaining(statistics))
    const top = { token: 'é', logprob: -0.125, bytes: [0xc3, 0xa9] }
    expect(best.logprobs[0]).toEqual({ ...told('Hm'), top_logprobs: [top] })
  },

  'ollama:logprobs:only-if-requested': async (serve) => {
    const engine = scriptedEngine(tokens)
    const url = await serve(engine)

    for (const body of [{}, { logprobs: false, top_logprobs: 5 }, { logprobs: null }]) {
      expect(await asked(url, engine, { ...hello, ...body })).not.toHaveProperty('logprobs')
      expect(await wholeOf(await chat(url, whole(body)))).not.toHaveProperty('logprobs')
    }
    expect((await asked(url, engine, { ...hello, logprobs: true })).logprobs).toBe(0)
    expect((await asked(url, engine, { ...hello, logprobs: true, top_logprobs: 20 })).logprobs).toBe(20)
  },

  'ollama:generate:suffix': async (serve) => {
    const engine = scriptedEngine('return')
    const url = await serve(engine, { models: folderOf({ 'gap.gguf': [gapModel(), '2026-01-01'] }) })

    const body = { ...question, suffix: '}', system: 'Be kind.', stream: false }
    const answer = await wholeOf(await generate(url, { ...body, model: 'gap' }))
    await expectOllamaError(
      await generate(url, body),
      400,
      'registry.ollama.ai/library/tiny:latest does not support insert',
    )
    const none = await asked(url, engine, { ...question, suffix: '' })

    expect(engine.requests[0]).toMatchObject({ input: { kind: 'infill', prefix: 'Hello', suffix: '}' } })
    expect(engine.requests[0]).not.toHaveProperty('reasoning')
    expect(answer.response).toBe('return')
    expect(none).toEqual(await asked(url, engine, question))
  },
} satisfies Partial<Record<OllamaRequirementId, Check>>
