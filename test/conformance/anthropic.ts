/** One check for each requirement of the Anthropic API. */

import type Anthropic from '@anthropic-ai/sdk'
import { LlmError } from '@modelmount/core'
import { type Engine, toTemplateMessages, uncached } from '@modelmount/core/engine'
import { readEvents, type ScriptedEngine, scriptedEngine } from '@modelmount/core/testing'
import { expect, vi } from 'vitest'
import { batches } from './anthropic-batches.ts'
import { caching } from './anthropic-cache.ts'
import {
  ask,
  callOllama,
  expectAnthropicError,
  expectError,
  greeting,
  joinedText,
  json,
  messageEventsOf,
  messageOf,
  promptOf,
  soon,
  textOf,
} from './calls.ts'
import { limitsOf } from './limits.ts'
import { folderOf } from './ollama-calls.ts'
import type { AnthropicRequirementId } from './requirements.ts'
import type { Check } from './suite.ts'

const version = { 'anthropic-version': '2023-06-01' }
const messagesIn = (engine: ScriptedEngine) => engine.requests.map(({ input }) => toTemplateMessages(input))
const zero = { cache_creation_input_tokens: 0, cache_read_input_tokens: 0 }

const count = (url: string, body: unknown) =>
  fetch(`${url}/v1/messages/count_tokens`, { method: 'POST', headers: json, body: JSON.stringify(body) })

const asking = (...messages: readonly object[]): object => ({ ...greeting, messages })

/** An engine that ends with the given `end` event, which `scriptedEngine()` cannot do. */
const ending = (end: Partial<Extract<Event, { type: 'end' }>>): Engine => ({
  ...scriptedEngine(''),
  async *generate({ model }) {
    yield { type: 'start', model, inputTokens: 1, reusedTokens: 0, ...uncached, fingerprint: 'fp' }
    yield { type: 'text', text: 'Once', tokens: 1 }
    yield {
      type: 'end',
      finishReason: 'stop',
      usage: { inputTokens: 1, reusedTokens: 0, ...uncached, outputTokens: 1 },
      timings: { loadMs: 0, promptMs: 0, generateMs: 0 },
      ...end,
    }
  },
})
type Event = ReturnType<Engine['generate']> extends AsyncIterable<infer One> ? One : never

const now = { name: 'now', input_schema: { type: 'object' } }
const weather = {
  name: 'get_weather',
  description: 'Get the current weather for a city',
  input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}
const withTools = { ...greeting, tools: [weather, now] }
const weatherCall = { call: 'get_weather', arguments: { city: 'Oslo' } }
const use = (id: string): object => ({ type: 'tool_use', id, name: 'get_weather', input: { city: 'Oslo' } })
const result = (id: string, more: object): object => ({ type: 'tool_result', tool_use_id: id, ...more })
/** Messages: a question, a tool call, and its result. */
const answering = (more: object): readonly object[] => [
  ...greeting.messages,
  { role: 'assistant', content: [use('toolu_1')] },
  { role: 'user', content: [result('toolu_1', more)] },
]
const callingWith = (said: object | undefined): Engine =>
  scriptedEngine([{ call: 'now', ...(said && { arguments: said }) }])
const thinkingAloud = [{ reasoning: 'Hm, ' }, { reasoning: 'a greeting.' }, 'Hello.']

const jsonDelta = (index: number, partial_json: string) => ({
  type: 'content_block_delta',
  index,
  delta: { type: 'input_json_delta', partial_json },
})
const joinedJson = (events: readonly Anthropic.RawMessageStreamEvent[], index: number) =>
  events
    .map((event) =>
      event.type === 'content_block_delta' && event.index === index && event.delta.type === 'input_json_delta'
        ? event.delta.partial_json
        : '',
    )
    .join('')

const unknown = (name: string): LlmError =>
  new LlmError('not_found', `model "${name}" not found`, { param: 'model', model: name })

export const checks = {
  ...caching,
  ...batches,
  ...limitsOf('anthropic'),
  'anthropic:auth:any-key-is-accepted': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    for (const headers of [
      { 'x-api-key': 'anything' },
      { authorization: 'Bearer anything' },
      { 'x-api-key': 'one', authorization: 'Bearer another' },
    ]) {
      expect((await ask(url, greeting, headers)).status).toBe(200)
    }
  },

  'anthropic:auth:no-key-is-needed': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    expect((await ask(url, greeting)).status).toBe(200)
  },

  'anthropic:transport:any-version': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const answers: Anthropic.Message[] = []
    for (const headers of [{}, version, { 'anthropic-version': '2026-10-21' }, { 'anthropic-version': 'x' }])
      answers.push({ ...(await messageOf(await ask(url, greeting, headers))), id: '' })

    expect(answers).toEqual(answers.map(() => answers[0]))
    expect(textOf(answers[0] as Anthropic.Message)).toBe('Hello there.')
  },

  'anthropic:transport:any-beta': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await fetch(`${url}/v1/messages?beta=true`, {
      method: 'POST',
      headers: { ...json, ...version, 'anthropic-beta': 'made-up-2099-01-01,another' },
      body: JSON.stringify(greeting),
    })

    expect(response.status).toBe(200)
    expect(textOf(await messageOf(response))).toBe('Hello there.')
  },

  'anthropic:transport:request-id': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const responses = [
      await ask(url, greeting),
      await ask(url, { ...greeting, stream: true }),
      await ask(url, {}),
      await count(url, greeting),
      await fetch(`${url}/v1/models`, { headers: version }),
      await fetch(`${url}/v1/nope`, { headers: version }),
      await fetch(`${url}/v1/messages`),
    ]

    const ids = responses.map(({ headers }) => headers.get('request-id'))
    expect(ids).toEqual(ids.map(() => expect.stringMatching(/^req_.+/)))
    expect(new Set(ids).size).toBe(responses.length)
    for (const response of responses) {
      const body = await response.text()
      if (!response.ok) expect(JSON.parse(body).request_id).toBe(response.headers.get('request-id'))
    }
  },

  'anthropic:transport:accept-is-ignored': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const whole = await ask(url, greeting, { accept: 'text/event-stream' })
    const said = await ask(url, { ...greeting, stream: false }, { accept: 'text/event-stream' })
    const streamed = await ask(url, { ...greeting, stream: true }, { accept: 'application/json' })

    expect(textOf(await messageOf(whole))).toBe('Hello there.')
    expect(textOf(await messageOf(said))).toBe('Hello there.')
    expect(joinedText(await messageEventsOf(streamed))).toBe('Hello there.')
  },

  'anthropic:transport:browsers': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))
    const wanted =
      'anthropic-beta,anthropic-dangerous-direct-browser-access,anthropic-version,authorization,content-type,x-api-key,x-stainless-os'

    const response = await fetch(`${url}/v1/messages`, {
      method: 'OPTIONS',
      headers: {
        origin: 'http://127.0.0.1:3000',
        'access-control-request-method': 'POST',
        'access-control-request-headers': wanted,
      },
    })

    expect(response.status).toBe(204)
    expect(response.headers.get('access-control-allow-headers')).toBe(wanted)
  },

  'anthropic:transport:probes': async (_serve, start) => {
    const { url } = await start(scriptedEngine('Hello there.'), { keys: true })

    const response = await fetch(`${url}/api/hello`, { method: 'HEAD' })

    expect(response.status).toBe(404)
    expect(response.headers.get('www-authenticate')).toBeNull()
    expect(await response.text()).toBe('')
  },

  'anthropic:errors:body-is-not-json': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    await expectAnthropicError(await ask(url, '{bad'), 400)
  },

  'anthropic:errors:too-large-body': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await ask(url, 'A'.repeat(33 * 1024 ** 2))

    await expectAnthropicError(response, 413, 'request_too_large')
  },

  'anthropic:errors:wrong-method': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    for (const headers of [{}, version]) {
      const response = await fetch(`${url}/v1/messages`, { method: 'PUT', headers })

      expect(response.headers.get('allow')).toBe('POST')
      await expectAnthropicError(response, 405)
    }
  },

  'anthropic:errors:unknown-path': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const ours = await fetch(`${url}/v1/nope`, { headers: version })
    const others = await fetch(`${url}/v1/nope`)

    await expectAnthropicError(ours, 404, 'not_found_error', expect.stringContaining('/v1/nope'))
    await expectError(others, 404)
  },

  'anthropic:errors:engine-failure': async (serve) => {
    const broken = scriptedEngine(() => {
      throw new Error("ENOENT: no such file or directory, open '/home/ann/secret.gguf'")
    })
    const url = await serve(broken)

    const response = await ask(url, greeting)

    const body = await response.clone().text()
    expect(body).not.toContain('/home/ann')
    expect(body).not.toContain('    at ')
    await expectAnthropicError(response, 500, 'api_error')
  },

  'anthropic:errors:overloaded': async (serve) => {
    const url = await serve(
      scriptedEngine(new LlmError('overloaded', 'Too many calls are waiting.', { retryAfterMs: 1_500 })),
    )

    const response = await ask(url, greeting)

    expect(response.headers.get('retry-after')).toBe('2')
    await expectAnthropicError(response, 529, 'overloaded_error', 'Too many calls are waiting.')
  },

  'anthropic:messages:whole-shape': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await ask(url, greeting)

    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toMatch(/^application\/json/)
    expect(await response.json()).toEqual({
      id: expect.stringMatching(/^msg_[\w-]+$/),
      type: 'message',
      role: 'assistant',
      model: 'tiny',
      container: null,
      content: [{ type: 'text', text: 'Hello there.' }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      stop_details: null,
      usage: {
        input_tokens: 1,
        ...zero,
        cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
        output_tokens: 2,
        output_tokens_details: null,
        server_tool_use: null,
        service_tier: 'standard',
      },
    })
  },

  'anthropic:messages:missing-fields': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    for (const field of ['model', 'max_tokens', 'messages']) {
      const response = await ask(url, { ...greeting, [field]: undefined })

      await expectAnthropicError(response, 400, 'invalid_request_error', `${field}: Field required`)
    }
  },

  'anthropic:messages:unknown-model': async (serve) => {
    const url = await serve(scriptedEngine(unknown('org/nope:Q4')))

    for (const stream of [false, true]) {
      const response = await ask(url, { ...greeting, model: 'org/nope:Q4', stream })

      await expectAnthropicError(response, 404, 'not_found_error', 'model: org/nope:Q4')
    }
  },

  'anthropic:messages:empty-messages': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await ask(url, asking())

    await expectAnthropicError(
      response,
      400,
      'invalid_request_error',
      'messages: at least one message is required',
    )
  },

  'anthropic:messages:text-blocks': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const blocks = (text: string): object[] => [{ type: 'text', text }]

    await ask(url, { ...asking({ role: 'user', content: 'Hello' }), system: 'Be brief.' })
    await ask(url, { ...asking({ role: 'user', content: blocks('Hello') }), system: blocks('Be brief.') })

    expect(engine.requests).toHaveLength(2)
    expect(engine.requests[1]).toEqual(engine.requests[0])
  },

  'anthropic:messages:max-tokens': async (serve) => {
    const url = await serve(scriptedEngine('one two three four'))

    const answer = await messageOf(await ask(url, { ...greeting, max_tokens: 1 }))

    expect(answer).toMatchObject({
      content: [{ text: 'one' }],
      stop_reason: 'max_tokens',
      stop_sequence: null,
      usage: { output_tokens: 1 },
    })
  },

  'anthropic:messages:stop-sequence': async (serve) => {
    const url = await serve(ending({ stopSequence: 'STOP' }))

    const whole = await messageOf(await ask(url, { ...greeting, stop_sequences: ['STOP'] }))
    const events = await messageEventsOf(
      await ask(url, { ...greeting, stop_sequences: ['STOP'], stream: true }),
    )

    const stopped = { stop_reason: 'stop_sequence', stop_sequence: 'STOP' }
    expect(whole).toMatchObject({ ...stopped, content: [{ text: 'Once' }] })
    expect(events.at(-2)).toMatchObject({ type: 'message_delta', delta: stopped })
  },

  'anthropic:messages:context-is-full': async (serve) => {
    const url = await serve(ending({ finishReason: 'context' }))

    const answer = await messageOf(await ask(url, greeting))

    expect(answer.stop_reason).toBe('model_context_window_exceeded')
  },

  'anthropic:messages:empty-answer': async (serve) => {
    const url = await serve(scriptedEngine([]))

    const whole = await messageOf(await ask(url, greeting))
    const events = await messageEventsOf(await ask(url, { ...greeting, stream: true }))

    expect(whole).toMatchObject({ content: [], stop_reason: 'end_turn', usage: { output_tokens: 0 } })
    expect(events.map(({ type }) => type)).toEqual(['message_start', 'message_delta', 'message_stop'])
  },

  'anthropic:messages:sampling-ranges': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    for (const field of ['temperature', 'top_p']) {
      for (const value of [0, 1]) expect((await ask(url, { ...greeting, [field]: value })).status).toBe(200)
      const above = await ask(url, { ...greeting, [field]: 1.01 })
      const below = await ask(url, { ...greeting, [field]: -0.1 })

      const start = `${field}: Input should be`
      await expectAnthropicError(above, 400, 'invalid_request_error', `${start} less than or equal to 1`)
      await expectAnthropicError(below, 400, 'invalid_request_error', `${start} greater than or equal to 0`)
    }

    expect(engine.requests).toHaveLength(4)
  },

  'anthropic:messages:turns-are-merged': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    await ask(url, asking({ role: 'user', content: 'One.' }, { role: 'user', content: 'Two.' }))

    expect(messagesIn(engine)[0]).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'One.\n\nTwo.' }] },
    ])
  },

  'anthropic:messages:prefill': async (serve) => {
    const engine = scriptedEngine(' 42')
    const url = await serve(engine)

    const answer = await ask(
      url,
      asking(...greeting.messages, { role: 'assistant', content: 'The answer is' }),
    )
    await ask(url, asking(...greeting.messages, { role: 'assistant', content: '' }))

    expect(textOf(await messageOf(answer))).toBe(' 42')
    expect(messagesIn(engine).map((messages) => messages.map(({ role }) => role))).toEqual([
      ['user', 'assistant'],
      ['user'],
    ])
  },

  'anthropic:messages:system-among-messages': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const system = { role: 'system', content: 'Be brief.' }
    const user = { role: 'user', content: 'Hello' }

    for (const messages of [
      [system, user],
      [user, system],
      [user, system, user],
    ])
      expect((await ask(url, asking(...messages))).status).toBe(200)

    const roles = messagesIn(engine).map((messages) => messages.map(({ role }) => role).join(' '))
    expect(roles).toEqual(['system user', 'user system', 'user system user'])
  },

  'anthropic:messages:unknown-role': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await ask(url, asking(...greeting.messages, { role: 'robot', content: 'Beep' }))

    await expectAnthropicError(
      response,
      400,
      'invalid_request_error',
      expect.stringMatching(/^messages\.1\.role: Input should be/),
    )
  },

  'anthropic:messages:unknown-block': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await ask(url, asking({ role: 'user', content: [{ type: 'smell' }] }))

    await expectAnthropicError(
      response,
      400,
      'invalid_request_error',
      expect.stringMatching(/^messages\.0\.content\.0: Input tag 'smell' found using 'type'/),
    )
  },

  'anthropic:messages:image-on-text-model': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))
    const content = [
      { type: 'text', text: 'What is this?' },
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
    ]

    const response = await ask(url, asking({ role: 'user', content }))

    await expectAnthropicError(
      response,
      400,
      'invalid_request_error',
      expect.stringMatching(/^messages\.0\.content\.1: An image is not supported/),
    )
  },

  'anthropic:messages:ignored-fields': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    await ask(url, greeting)
    const response = await ask(url, {
      ...greeting,
      metadata: { user_id: 'x' },
      service_tier: 'auto',
      speed: 'standard',
      inference_geo: 'eu',
      context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] },
      foo: 1,
    })

    expect(response.status).toBe(200)
    expect(engine.requests[1]).toEqual(engine.requests[0])
  },

  'anthropic:messages:billing-block': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const text = (text: string): object => ({ type: 'text', text })

    for (const cch of ['1a2b', '3c4d']) {
      const billing = text(`x-anthropic-billing-header: cc_version=2.1; cch=${cch};`)
      await ask(url, { ...greeting, system: [billing, text('Be brief.')] })
    }

    expect(engine.requests[1]).toEqual(engine.requests[0])
    expect(messagesIn(engine)[0]?.[0]?.content).toEqual([text('Be brief.')])
  },

  'anthropic:messages:mcp-servers-are-rejected': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))
    const server = { type: 'url', name: 'a', url: 'https://a.example' }

    const none = await ask(url, { ...greeting, mcp_servers: [] })
    const some = await ask(url, { ...greeting, mcp_servers: [server] })

    expect(none.status).toBe(200)
    await expectAnthropicError(
      some,
      400,
      'invalid_request_error',
      expect.stringMatching(/^mcp_servers: .* not supported yet/),
    )
  },

  'anthropic:messages:threads-are-rejected': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    for (const thread of [{ type: 'create' }, { type: 'continue', previous_message_id: 'msg_1' }]) {
      const response = await ask(url, { ...greeting, thread })

      expect(response.status).toBe(400)
      expect(await response.json()).toMatchObject({
        error: { type: 'invalid_request_error', details: { error_code: 'thread_unsupported_request' } },
      })
    }

    expect(engine.requests).toEqual([])
  },

  'anthropic:messages:output-format': async (serve) => {
    const engine = scriptedEngine('{}')
    const url = await serve(engine)
    const schema = { type: 'object', properties: { city: { type: 'string' } } }
    const format = { type: 'json_schema', schema }

    await ask(url, { ...greeting, output_config: { effort: 'low' } })
    await ask(url, { ...greeting, output_config: { effort: 'low', format } })
    await ask(url, { ...greeting, output_format: format })
    const wrong = await ask(url, { ...greeting, output_format: { type: 'xml' } })

    const asked = { type: 'json-schema', schema }
    expect(engine.requests.map((request) => request.format)).toEqual([undefined, asked, asked])
    await expectAnthropicError(
      wrong,
      400,
      'invalid_request_error',
      "output_format.type: Input should be 'json_schema'",
    )
  },

  'anthropic:tools:whole': async (serve) => {
    const url = await serve(scriptedEngine(['I look.', weatherCall]))

    const answer = await messageOf(await ask(url, withTools))

    expect(answer).toMatchObject({
      content: [
        { type: 'text', text: 'I look.' },
        {
          type: 'tool_use',
          id: expect.stringMatching(/^toolu_[\w-]+$/),
          name: 'get_weather',
          input: { city: 'Oslo' },
          caller: { type: 'direct' },
        },
      ],
      stop_reason: 'tool_use',
    })
  },

  'anthropic:tools:streamed': async (serve) => {
    const url = await serve(scriptedEngine([{ ...weatherCall, arguments: ['{"ci', 'ty":"Os', 'lo"}'] }]))

    const { content } = await messageOf(await ask(url, withTools))
    const events = await messageEventsOf(await ask(url, { ...withTools, stream: true }))

    const [block] = content as [Anthropic.ToolUseBlock]
    expect(events.slice(1, 6)).toEqual([
      { type: 'content_block_start', index: 0, content_block: { ...block, input: {} } },
      jsonDelta(0, '{"ci'),
      jsonDelta(0, 'ty":"Os'),
      jsonDelta(0, 'lo"}'),
      { type: 'content_block_stop', index: 0 },
    ])
    expect(block.input).toEqual({ city: 'Oslo' })
    expect(events.at(-2)).toMatchObject({ delta: { stop_reason: 'tool_use' } })
  },

  'anthropic:tools:no-arguments': async (serve) => {
    for (const said of [undefined, {}, ['{', '}']]) {
      const url = await serve(callingWith(said))

      const whole = await messageOf(await ask(url, withTools))
      const events = await messageEventsOf(await ask(url, { ...withTools, stream: true }))

      expect(whole.content).toMatchObject([{ type: 'tool_use', input: {} }])
      expect(JSON.parse(joinedJson(events, 0) || '{}')).toEqual({})
    }
  },

  'anthropic:tools:long-arguments': async (serve) => {
    const text = '"\\quoted\\"\n\tand 👩‍🚀 飛んで \u2028'.repeat(150)
    const json = JSON.stringify({ text })
    const url = await serve(scriptedEngine([{ call: 'now', arguments: json.match(/.{1,7}/gsu) ?? [] }]))

    const body = { ...withTools, max_tokens: 9_999 }

    const whole = await messageOf(await ask(url, body))
    const events = await messageEventsOf(await ask(url, { ...body, stream: true }))

    expect(text.length).toBeGreaterThan(4_000)
    expect(whole.content).toMatchObject([{ input: { text } }])
    expect(JSON.parse(joinedJson(events, 0))).toEqual({ text })
  },

  'anthropic:tools:blocks-in-order': async (serve) => {
    const url = await serve(
      scriptedEngine([{ reasoning: 'Hm.' }, 'I look.', weatherCall, { call: 'now', id: 'call_1' }]),
    )

    const events = await messageEventsOf(
      await ask(url, { ...withTools, thinking: { type: 'adaptive' }, stream: true }),
    )

    const steps = events.flatMap((event) =>
      event.type === 'content_block_start'
        ? [`${event.index} ${event.content_block.type}`]
        : event.type === 'content_block_stop'
          ? [`${event.index} end`]
          : [],
    )
    expect(steps).toEqual([
      '0 thinking',
      '0 end',
      '1 text',
      '1 end',
      '2 tool_use',
      '2 end',
      '3 tool_use',
      '3 end',
    ])
  },

  'anthropic:messages:engine-errors': async (serve) => {
    for (const [param, field] of [
      ['format.schema#/not', 'output_config.format.schema'],
      ['tools[1].parameters#/not', 'tools.1.custom.input_schema'],
    ] as const) {
      const url = await serve(scriptedEngine(new LlmError('invalid_request', 'No.', { param })))

      for (const stream of [false, true])
        await expectAnthropicError(await ask(url, { ...withTools, stream }), 400, undefined, `${field}: No.`)
    }
  },

  'anthropic:messages:documents': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const found = [{ type: 'text', text: 'Sunshine.' }]
    const content = [
      { type: 'document', title: 'Oslo', source: { type: 'text', media_type: 'text/plain', data: 'Rain.' } },
      { type: 'search_result', title: 'Rome', source: 'https://a.b', content: found },
      { type: 'text', text: 'So?' },
    ]
    const file = { type: 'base64', media_type: 'application/pdf', data: 'AAAA' }

    const read = await ask(url, asking({ role: 'user', content }))
    const refused = await ask(url, asking({ role: 'user', content: [{ type: 'document', source: file }] }))

    expect(textOf(await messageOf(read))).toBe('Hello there.')
    const [prompt] = messagesIn(engine)[0]?.[0]?.content ?? []
    expect(prompt).toMatchObject({
      text: expect.stringMatching(/Oslo\s+Rain\..*Rome\s+https:\/\/a\.b\s+Sunshine\..*So\?$/s),
    })
    await expectAnthropicError(
      refused,
      400,
      undefined,
      expect.stringMatching(/^messages\.0\.content\.0\.source: .*'base64'/),
    )
  },

  'anthropic:tools:incomplete-call': async (serve) => {
    const url = await serve(scriptedEngine([{ ...weatherCall, arguments: ['{"ci', 'ty":"Oslo"}'] }]))
    const body = { ...withTools, max_tokens: 1 }

    const whole = await messageOf(await ask(url, body))
    const events = await messageEventsOf(await ask(url, { ...body, stream: true }))

    expect(whole).toMatchObject({ content: [], stop_reason: 'max_tokens' })
    expect(joinedJson(events, 0)).toBe('{"ci')
    expect(events.at(-2)).toMatchObject({ delta: { stop_reason: 'max_tokens' } })
  },

  'anthropic:tools:round-trip': async (serve) => {
    const engine = scriptedEngine('It rains.')
    const url = await serve(engine)

    const response = await ask(url, {
      ...withTools,
      messages: [
        ...greeting.messages,
        {
          role: 'assistant',
          content: [use('toolu_1'), use('toolu_2')],
        },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'So?' },
            result('toolu_2', { content: 'No such city.', is_error: true }),
            result('toolu_1', { content: [{ type: 'text', text: 'Rain.' }] }),
          ],
        },
      ],
    })

    expect(textOf(await messageOf(response))).toBe('It rains.')
    const text = (text: string) => ({ type: 'text', text })
    const call = (id: string) => ({
      type: 'tool-call',
      id,
      name: 'get_weather',
      arguments: '{"city":"Oslo"}',
    })
    expect(messagesIn(engine)[0]?.slice(1)).toEqual([
      { role: 'assistant', content: [call('toolu_1'), call('toolu_2')] },
      {
        role: 'tool',
        content: [
          { type: 'tool-result', id: 'toolu_2', content: [text('No such city.')], isError: true },
          { type: 'tool-result', id: 'toolu_1', content: [text('Rain.')] },
        ],
      },
      { role: 'user', content: [text('So?')] },
    ])
  },

  'anthropic:tools:result-contents': async (serve) => {
    const url = await serve(scriptedEngine('It rains.'))
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }

    for (const content of [undefined, null, '', 'Rain.', [], [{ type: 'text', text: 'Rain.' }, image]]) {
      const response = await ask(url, { ...withTools, messages: answering({ content }) })

      expect(response.status).toBe(200)
    }
  },

  'anthropic:tools:history-without-tools': async (serve) => {
    const url = await serve(scriptedEngine('It rains.'))

    const response = await ask(url, { ...greeting, messages: answering({ content: 'Rain.' }) })

    expect(textOf(await messageOf(response))).toBe('It rains.')
  },

  'anthropic:tools:choice': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    for (const tool_choice of [
      { type: 'auto', disable_parallel_tool_use: true },
      { type: 'any' },
      { type: 'tool', name: 'now' },
      { type: 'none' },
    ])
      expect((await ask(url, { ...withTools, tool_choice })).status).toBe(200)

    expect(engine.requests.map(({ input }) => input.kind === 'chat' && input.toolChoice)).toEqual([
      { mode: 'auto', parallel: false },
      { mode: 'required' },
      { mode: 'required', names: ['now'] },
      { mode: 'none' },
    ])
  },

  'anthropic:tools:choice-of-missing-tool': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const unknown = await ask(url, { ...withTools, tool_choice: { type: 'tool', name: 'later' } })
    const without = await ask(url, { ...greeting, tool_choice: { type: 'any' } })

    await expectAnthropicError(
      unknown,
      400,
      'invalid_request_error',
      "tool_choice.name: Tool 'later' not found in provided tools",
    )
    await expectAnthropicError(
      without,
      400,
      'invalid_request_error',
      expect.stringContaining('may only be specified while providing tools'),
    )
  },

  'anthropic:tools:definitions': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    for (const [tools, message] of [
      [[now, now], 'tools: Tool names must be unique.'],
      [
        [{ ...now, name: 'a b' }],
        "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
      ],
      [[{ name: 'now', input_schema: {} }], 'tools.0.custom.input_schema.type: Field required'],
    ] as const) {
      const response = await ask(url, { ...greeting, tools })

      await expectAnthropicError(response, 400, 'invalid_request_error', message)
    }
  },

  'anthropic:tools:known-schemas': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const tools = [
      { type: 'bash_20250124', name: 'bash' },
      { type: 'text_editor_20250728', name: 'str_replace_based_edit_tool', max_characters: 9 },
      { type: 'memory_20250818', name: 'memory' },
    ]

    await ask(url, { ...greeting, tools })

    const [request] = engine.requests
    expect(request?.input.kind === 'chat' && request.input.tools).toMatchObject(
      ['bash', 'str_replace_based_edit_tool', 'memory'].map((name) => ({
        name,
        parameters: { type: 'object', properties: { command: { type: 'string' } } },
      })),
    )
  },

  'anthropic:tools:hosted-are-rejected': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    for (const [type, start] of [
      ['web_search_20250305', 'tools.0.type: '],
      ['code_execution_20250825', 'tools.0.type: '],
      ['made_up_20990101', "tools.0: Input tag 'made_up_20990101' found using 'type'"],
    ]) {
      const response = await ask(url, { ...greeting, tools: [{ type, name: 'x' }] })

      await expectAnthropicError(
        response,
        400,
        'invalid_request_error',
        expect.stringMatching(new RegExp(`^${start}`)),
      )
    }
  },

  'anthropic:tools:pairs': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))
    const [question, call, answer] = answering({}) as [object, object, object]

    const open = await ask(url, { ...withTools, messages: [question, call, question] })
    const orphan = await ask(url, { ...withTools, messages: [answer] })

    await expectAnthropicError(
      open,
      400,
      'invalid_request_error',
      'messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. Each `tool_use` block must have a corresponding `tool_result` block in the next message.',
    )
    await expectAnthropicError(
      orphan,
      400,
      'invalid_request_error',
      'messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.',
    )
  },

  'anthropic:thinking:requested': async (serve) => {
    const engine = scriptedEngine(thinkingAloud)
    const url = await serve(engine)
    const body = { ...greeting, max_tokens: 2_000, thinking: { type: 'enabled', budget_tokens: 1_024 } }

    const whole = await messageOf(await ask(url, body))
    const events = await messageEventsOf(await ask(url, { ...body, stream: true }))

    expect(engine.requests.map(({ reasoning }) => reasoning)).toEqual([true, true])
    expect(whole.content).toMatchObject([
      { type: 'thinking', thinking: 'Hm, a greeting.', signature: expect.stringMatching(/.{16,}/) },
      { type: 'text', text: 'Hello.' },
    ])
    expect(whole.usage).toMatchObject({ output_tokens: 3, output_tokens_details: { thinking_tokens: 2 } })
    const [{ signature }] = whole.content as [Anthropic.ThinkingBlock]
    expect(events.slice(1, 6)).toEqual([
      {
        type: 'content_block_start',
        index: 0,
        content_block: { type: 'thinking', thinking: '', signature: '' },
      },
      { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'Hm, ' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'a greeting.' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature } },
      { type: 'content_block_stop', index: 0 },
    ])
    expect(events.at(-2)).toMatchObject({ usage: { output_tokens_details: { thinking_tokens: 2 } } })
  },

  'anthropic:thinking:not-requested': async (serve) => {
    const engine = scriptedEngine(thinkingAloud)
    const url = await serve(engine)

    for (const thinking of [undefined, null, { type: 'disabled' }]) {
      const whole = await messageOf(await ask(url, { ...greeting, thinking }))
      const events = await messageEventsOf(await ask(url, { ...greeting, thinking, stream: true }))

      expect(whole.content).toMatchObject([{ type: 'text', text: 'Hello.' }])
      expect(whole.usage).toMatchObject({ output_tokens: 3, output_tokens_details: { thinking_tokens: 2 } })
      expect(events[1]).toMatchObject({ index: 0, content_block: { type: 'text' } })
      expect(joinedText(events)).toBe('Hello.')
    }

    expect(new Set(engine.requests.map(({ reasoning }) => reasoning))).toEqual(new Set([false]))
  },

  'anthropic:thinking:omitted': async (serve) => {
    const url = await serve(scriptedEngine(thinkingAloud))
    const body = { ...greeting, thinking: { type: 'adaptive', display: 'omitted' } }

    const whole = await messageOf(await ask(url, body))
    const events = await messageEventsOf(await ask(url, { ...body, stream: true }))

    expect(whole.content).toMatchObject([
      { type: 'thinking', thinking: '', signature: expect.stringMatching(/.{16,}/) },
      { type: 'text' },
    ])
    expect(JSON.stringify(events)).not.toContain('thinking_delta')
    expect(events[2]).toMatchObject({ delta: { type: 'signature_delta' } })
  },

  'anthropic:thinking:sent-back': async (serve) => {
    const engine = scriptedEngine('Hello.')
    const url = await serve(engine)
    const blocks = [
      { type: 'thinking', thinking: 'Hm.', signature: 'of somebody else' },
      { type: 'thinking', thinking: ' So.' },
      { type: 'redacted_thinking', data: 'AAAA' },
      { type: 'text', text: 'Hi' },
    ]

    const response = await ask(url, asking(...greeting.messages, { role: 'assistant', content: blocks }))

    expect(response.status).toBe(200)
    expect(messagesIn(engine)[0]?.at(-1)?.content).toEqual([
      { type: 'reasoning', text: 'Hm.' },
      { type: 'reasoning', text: ' So.' },
      { type: 'text', text: 'Hi' },
    ])
  },

  'anthropic:thinking:budget': async (serve) => {
    const url = await serve(scriptedEngine('Hello.'))

    const response = await ask(url, { ...greeting, thinking: { type: 'enabled', budget_tokens: 100 } })

    await expectAnthropicError(
      response,
      400,
      'invalid_request_error',
      'max_tokens: `max_tokens` must be greater than `thinking.budget_tokens`',
    )
  },

  'anthropic:messages:context-length': async (serve) => {
    const tooLong = new LlmError('context_length', 'Too long.', { inputTokens: 5_000, contextSize: 4_096 })
    const url = await serve(scriptedEngine(tooLong))

    for (const stream of [false, true]) {
      const response = await ask(url, { ...greeting, stream })

      await expectAnthropicError(
        response,
        400,
        'invalid_request_error',
        'prompt is too long: 5000 tokens > 4096 maximum',
      )
    }
  },

  'anthropic:messages:stream-order': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await ask(url, { ...greeting, stream: true })

    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/)
    const events = await messageEventsOf(response)
    expect(events).toMatchObject([
      {
        type: 'message_start',
        message: {
          id: expect.stringMatching(/^msg_.+/),
          type: 'message',
          role: 'assistant',
          model: 'tiny',
          content: [],
          stop_reason: null,
          stop_sequence: null,
        },
      },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: ' there.' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null } },
      { type: 'message_stop' },
    ])
  },

  'anthropic:messages:stream-frames': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const body = await (await ask(url, { ...greeting, stream: true })).text()

    expect(body).toMatch(/^(event: (\w+)\ndata: \{"type":"\2".*\}\n\n)+$/)
    expect(body).toMatch(/event: message_stop\ndata: \{"type":"message_stop"\}\n\n$/)
    expect(body).not.toContain('[DONE]')
  },

  'anthropic:messages:stream-usage': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const events = await messageEventsOf(await ask(url, { ...greeting, stream: true }))

    expect(events[0]).toMatchObject({ message: { usage: { input_tokens: 1, output_tokens: 0, ...zero } } })
    expect(events.at(-2)).toMatchObject({
      type: 'message_delta',
      usage: { input_tokens: 1, output_tokens: 2, ...zero },
    })
  },

  'anthropic:messages:stream-joins-to-whole': async (serve) => {
    const url = await serve(scriptedEngine((request) => [...promptOf(request)]))
    const body = asking({ role: 'user', content: '👩‍🚀 飛んで ✨ é' })

    const whole = await messageOf(await ask(url, body))
    const events = await messageEventsOf(await ask(url, { ...body, stream: true }))

    expect(textOf(whole)).toBe('👩‍🚀 飛んで ✨ é')
    expect(joinedText(events)).toBe('👩‍🚀 飛んで ✨ é')
  },

  'anthropic:messages:stream-error': async (serve) => {
    const failure = new LlmError('upstream', 'The model process has ended.')
    const url = await serve(
      scriptedEngine((request) => (promptOf(request) === 'Fail' ? ['Once', ' upon', failure] : 'Hello.')),
    )

    const failed = await ask(url, { ...asking({ role: 'user', content: 'Fail' }), stream: true })
    const events = await messageEventsOf(failed)
    const next = await ask(url, greeting)

    expect(failed.status).toBe(200)
    expect(joinedText(events)).toBe('Once upon')
    expect(events.at(-1)).toEqual({
      type: 'error',
      error: { type: 'api_error', message: 'The model process has ended.' },
      request_id: failed.headers.get('request-id'),
    })
    expect(textOf(await messageOf(next))).toBe('Hello.')
  },

  'anthropic:messages:stream-of-invalid-request': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await ask(url, { ...greeting, stream: true, temperature: 3 })

    await expectAnthropicError(response, 400)
  },

  'anthropic:messages:stream-client-disconnects': async (serve) => {
    const engine = scriptedEngine('word '.repeat(2_000), { delayMs: 5 })
    const url = await serve(engine)
    const leaving = new AbortController()
    const long = { ...greeting, max_tokens: 5_000, stream: true }
    const response = await ask(url, long, {}, leaving.signal)
    const events = readEvents(response.body as ReadableStream<Uint8Array>)
    expect((await events.next()).value).toMatchObject({ event: 'message_start' })
    expect(engine.running).toBe(1)

    leaving.abort()

    await expect.poll(() => engine.running, soon).toBe(0)
  },

  'anthropic:count:prompt': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const body = { ...asking(...greeting.messages, { role: 'assistant', content: 'Hi' }), system: 'Be kind.' }

    const response = await count(url, { ...body, max_tokens: undefined })
    const counted = (await response.json()) as Anthropic.MessageTokensCount
    const asked = engine.requests.length
    const { usage } = await messageOf(await ask(url, body))

    expect(response.status).toBe(200)
    expect(counted).toEqual({ input_tokens: 3 })
    expect(asked).toBe(0)
    expect(usage.input_tokens).toBe(3)
  },

  'anthropic:count:invalid': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const missing = await count(url, { messages: greeting.messages })
    const tools = await count(url, { ...greeting, tools: [{ name: 'now' }] })

    await expectAnthropicError(missing, 400, 'invalid_request_error', 'model: Field required')
    await expectAnthropicError(
      tools,
      400,
      'invalid_request_error',
      'tools.0.custom.input_schema: Field required',
    )
  },

  'anthropic:count:unknown-model': async (serve) => {
    const url = await serve({
      ...scriptedEngine('Hello there.'),
      countTokens: async ({ model }) => {
        throw unknown(model)
      },
    })

    const response = await count(url, { ...greeting, model: 'nope' })

    await expectAnthropicError(response, 404, 'not_found_error', 'model: nope')
  },

  'anthropic:models:list': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const info = (id: string, name: string) => ({
      type: 'model',
      id,
      display_name: name,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/),
      max_input_tokens: null,
      max_tokens: null,
      capabilities: null,
      lifecycle: 'active',
      deprecated_at: null,
      retires_at: null,
      line: null,
    })
    const dated = await waitForVersion(url)

    expect(await (await fetch(`${url}/v1/models`, { headers: version })).json()).toEqual({
      data: [info(dated, dated), info('tiny:latest', 'tiny')],
      has_more: false,
      first_id: dated,
      last_id: 'tiny:latest',
    })
  },

  'anthropic:models:list-by-header': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const openai = await fetch(`${url}/v1/models?limit=1000`, { headers: { authorization: 'Bearer x' } })
    const anthropic = await fetch(`${url}/v1/models`, {
      headers: { ...version, authorization: 'Bearer x' },
    })

    const { has_more, data } = (await anthropic.json()) as { has_more: boolean; data: { type: string }[] }
    expect(await openai.json()).toMatchObject({ object: 'list', data: [{ object: 'model' }] })
    expect([has_more, data[0]?.type]).toEqual([false, 'model'])
  },

  'anthropic:models:pages': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))
    const list = (query: string) => fetch(`${url}/v1/models?${query}`, { headers: version })

    const dated = await waitForVersion(url)
    const none = { data: [], has_more: false, first_id: null, last_id: null }
    const page = (id: string, has_more: boolean) => ({ data: [{ id }], has_more, first_id: id, last_id: id })

    expect(await (await list('limit=1')).json()).toMatchObject(page(dated, true))
    expect(await (await list(`after_id=${dated}`)).json()).toMatchObject(page('tiny:latest', false))
    expect(await (await list('before_id=tiny%3Alatest&limit=5')).json()).toMatchObject(page(dated, false))
    for (const query of ['after_id=tiny:latest', `before_id=${dated}`, 'after_id=gone'])
      expect(await (await list(query)).json()).toEqual(none)
    const states = (...all: string[]): string => all.map((state) => `lifecycle[]=${state}`).join('&')
    for (const query of [states('deprecated'), states('retired', 'deprecated')])
      expect(await (await list(query)).json()).toEqual(none)
    for (const query of [states('active'), states('retired', 'active')])
      expect(await (await list(`limit=1&${query}`)).json()).toMatchObject(page(dated, true))
    for (const query of [
      ...['limit=0', 'limit=1001', 'limit=x', 'limit=', 'after_id=a&before_id=b'],
      states('active', 'gone'),
    ])
      await expectAnthropicError(await list(query), 400)
  },

  'anthropic:models:retrieve': async (serve) => {
    const given = { models: folderOf({}), scopes: ['inference', 'models'] } as const
    const url = await serve(scriptedEngine('Hello there.'), given)
    await callOllama(url, 'copy', { source: 'tiny', destination: 'team/copy:q4' })

    for (const [path, id] of [
      ['tiny', 'tiny:latest'],
      ['tiny:latest', 'tiny:latest'],
      ['tiny%3Alatest', 'tiny:latest'],
      ['team/copy:q4', 'team/copy:q4'],
      ['team%2Fcopy%3Aq4', 'team/copy:q4'],
    ]) {
      const response = await fetch(`${url}/v1/models/${path}`, { headers: version })

      expect(response.status).toBe(200)
      expect(await response.json()).toMatchObject({ type: 'model', id })
    }
  },

  'anthropic:models:retrieve-unknown': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    for (const path of ['org%2Fx:Q4', 'org/x:Q4']) {
      const response = await fetch(`${url}/v1/models/${path}`, { headers: version })

      await expectAnthropicError(response, 404, 'not_found_error', 'model: org/x:Q4')
    }
  },
} satisfies Record<AnthropicRequirementId, Check>

/** Returns the dated id of the built-in model, which is listed when its file is hashed. */
const waitForVersion = (url: string): Promise<string> =>
  vi.waitFor(
    async () => {
      const response = await fetch(`${url}/v1/models`, { headers: version })
      const { data } = (await response.json()) as { readonly data: readonly { readonly id: string }[] }
      const dated = data.find(({ id }) => /^tiny-\d{8}$/.test(id))
      expect(dated).toBeDefined()
      return (dated as { readonly id: string }).id
    },
    { timeout: 10_000 },
  )
