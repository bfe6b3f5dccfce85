/** One check for each requirement of OpenAI's Responses API. */
import { LlmError } from '@modelmount/core'
import { type GenerateRequest, toTemplateMessages } from '@modelmount/core/engine'
import { readEvents, type ScriptedChunk, type ScriptedEngine, scriptedEngine } from '@modelmount/core/testing'
import type OpenAI from 'openai'
import { expect } from 'vitest'
import { expectError, json, soon } from './calls.ts'
import type { OpenAIRequirementId } from './requirements.ts'
import type { Check } from './suite.ts'

const hi = { model: 'tiny', input: 'Hello' }
const streamed = { ...hi, stream: true }
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const functionOf = (name: string, more: object = { parameters }) => ({ type: 'function', name, ...more })
const tools = [functionOf('weather'), functionOf('time')]
const twoCalls: readonly ScriptedChunk[] = [
  { call: 'weather', id: 'call_a', arguments: ['{"city":', '"Paris"}'] },
  { call: 'time', id: 'call_b' },
]
const call = { type: 'function_call', call_id: 'call_a', name: 'weather', arguments: '{"city":"Paris"}' }
const result = { type: 'function_call_output', call_id: 'call_a', output: 'rain' }

const respond = (url: string, body: unknown, signal: AbortSignal | null = null) =>
  fetch(`${url}/v1/responses`, { method: 'POST', headers: json, body: JSON.stringify(body), signal })

type Response_ = OpenAI.Responses.Response & { readonly store: boolean }
type Event = OpenAI.Responses.ResponseStreamEvent
const responseOf = async (response: Response): Promise<Response_> => {
  expect(response.status).toBe(200)
  return (await response.json()) as Response_
}

/** Reads a stream. Expects each event to be named by its type, and numbered from 0 without a gap. */
async function eventsOf(response: Response): Promise<Event[]> {
  expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/)
  const events: Event[] = []
  for await (const { event, data } of readEvents(await response.text())) {
    const value = JSON.parse(data) as Event
    expect(event).toBe(value.type)
    expect(value.sequence_number).toBe(events.length)
    events.push(value)
  }
  return events
}

/** Returns the response object in the last event of a stream. */
function endOf(events: readonly Event[]): Response_ {
  const last = events.at(-1)
  if (!last || !('response' in last)) throw new Error(`The last event is ${last?.type}.`)
  return last.response as Response_
}

/** Removes ids and times, which differ between calls. */
const bare = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value).replaceAll(/(resp|msg|rs|fc|ctc)_[\w-]{21,}/g, '$1'), (key, one) =>
    key.endsWith('_at') && one !== null ? 0 : one,
  )

/** Sends a request and resolves with the last request to the engine. */
async function asked(url: string, engine: ScriptedEngine, fields: object): Promise<GenerateRequest> {
  const response = await respond(url, { ...hi, ...fields })
  expect(await response.text()).not.toContain('"error":{')
  return engine.requests.at(-1) as GenerateRequest
}

const chatOf = ({ input }: GenerateRequest) => input as Extract<GenerateRequest['input'], { kind: 'chat' }>
const token = (text: string, logprob: number) => ({ id: 1, text, bytes: [...Buffer.from(text)], logprob })
const wire = (text: string, logprob: number) => ({ token: text, logprob, bytes: [...Buffer.from(text)] })

export const responses = {
  'openai:responses:whole-shape': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await responseOf(await respond(url, hi))

    expect(response).toEqual({
      id: expect.stringMatching(/^resp_.+/),
      object: 'response',
      created_at: expect.any(Number),
      completed_at: expect.any(Number),
      status: 'completed',
      background: false,
      error: null,
      incomplete_details: null,
      instructions: null,
      max_output_tokens: null,
      max_tool_calls: null,
      model: 'tiny',
      output: [
        {
          id: expect.stringMatching(/^msg_.+/),
          type: 'message',
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'output_text', text: 'Hello there.', annotations: [], logprobs: [] }],
        },
      ],
      parallel_tool_calls: true,
      previous_response_id: null,
      presence_penalty: 0,
      frequency_penalty: 0,
      reasoning: { effort: null, summary: null },
      service_tier: 'default',
      store: true,
      temperature: 1,
      text: { format: { type: 'text' }, verbosity: 'medium' },
      tool_choice: 'auto',
      tools: [],
      top_logprobs: 0,
      top_p: 1,
      truncation: 'disabled',
      usage: {
        input_tokens: 1,
        input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
        output_tokens: 2,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: 3,
      },
      user: null,
      safety_identifier: null,
      prompt_cache_key: null,
      metadata: {},
    })
    expect(Number.isInteger(response.created_at)).toBe(true)
    expect(Math.abs(response.created_at - Date.now() / 1000)).toBeLessThan(5)
  },

  'openai:responses:echoed-fields': async (serve) => {
    const url = await serve(scriptedEngine('{}'))
    const fields = {
      instructions: 'Be brief.',
      max_output_tokens: 50,
      max_tool_calls: 3,
      parallel_tool_calls: false,
      reasoning: { effort: 'low', summary: 'auto' },
      temperature: 0.5,
      text: {
        format: { type: 'json_schema', name: 'a', schema: parameters, strict: true },
        verbosity: 'low',
      },
      tool_choice: { type: 'function', name: 'time' },
      top_logprobs: 2,
      top_p: 0.9,
      truncation: 'auto',
      user: 'ada',
      safety_identifier: 'x',
      prompt_cache_key: 'y',
      metadata: { a: 'b' },
    }

    const response = await responseOf(await respond(url, { ...hi, ...fields, tools, store: false }))

    expect(response).toMatchObject({
      ...fields,
      store: false,
      tools: [
        { type: 'function', name: 'weather', description: null, parameters, strict: null },
        { type: 'function', name: 'time', description: null, parameters, strict: null },
      ],
    })
  },

  'openai:responses:null-means-absent': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const names = [
      ...['background', 'conversation', 'include', 'instructions', 'max_output_tokens', 'max_tool_calls'],
      ...[
        'metadata',
        'parallel_tool_calls',
        'previous_response_id',
        'prompt',
        'prompt_cache_key',
        'reasoning',
      ],
      ...['safety_identifier', 'service_tier', 'store', 'stream', 'stream_options', 'temperature', 'text'],
      ...['tool_choice', 'tools', 'top_logprobs', 'top_p', 'truncation', 'user'],
    ]

    const plain = await responseOf(await respond(url, hi))
    const nulls = Object.fromEntries(names.map((name) => [name, null]))
    const response = await responseOf(await respond(url, { ...hi, ...nulls, foo: 1 }))

    expect(bare(response)).toEqual(bare(plain))
    expect(engine.requests[1]).toEqual(engine.requests[0])
  },

  'openai:responses:input-forms': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const text = { type: 'input_text', text: 'Hello' }

    const inputs = [
      'Hello',
      [{ role: 'user', content: 'Hello' }],
      [{ type: null, role: 'user', content: 'Hello' }],
      [{ type: 'message', role: 'user', content: [text] }],
      [{ role: 'user', content: [{ type: 'output_text', text: 'Hello', annotations: [], logprobs: [] }] }],
      [{ role: 'user', content: [{ type: 'refusal', refusal: 'Hello' }] }],
    ]
    const requests: GenerateRequest[] = []
    for (const input of inputs) requests.push(await asked(url, engine, { input }))

    expect(requests.map(({ input }) => input)).toEqual(inputs.map(() => requests[0]?.input))
    expect(chatOf(requests[0] as GenerateRequest).messages).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'Hello' }] },
    ])
  },

  'openai:responses:instructions': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const input = [
      { role: 'developer', content: 'Be kind.' },
      { role: 'user', content: 'Hello' },
    ]

    const request = await asked(url, engine, { input, instructions: 'Be brief.' })

    expect(toTemplateMessages(request.input).map(({ role, content }) => [role, content])).toEqual([
      ['system', [{ type: 'text', text: 'Be brief.' }]],
      ['system', [{ type: 'text', text: 'Be kind.' }]],
      ['user', [{ type: 'text', text: 'Hello' }]],
    ])
  },

  'openai:responses:turns': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const other = { type: 'function_call', call_id: 'call_b', name: 'time', arguments: '' }

    const request = await asked(url, engine, {
      input: [
        { role: 'user', content: 'Rain?' },
        { type: 'reasoning', id: 'rs_1', summary: [], content: [{ type: 'reasoning_text', text: 'Hm.' }] },
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'I look.' }] },
        { ...call, id: 'fc_1', status: 'completed' },
        other,
        result,
        { ...result, call_id: 'call_b', output: [{ type: 'input_text', text: 'noon' }] },
      ],
    })

    const text = (said: string) => [{ type: 'text', text: said }]
    expect(toTemplateMessages(request.input)).toEqual([
      { role: 'user', content: text('Rain?') },
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'Hm.' },
          ...text('I look.'),
          { type: 'tool-call', id: 'call_a', name: 'weather', arguments: '{"city":"Paris"}' },
          { type: 'tool-call', id: 'call_b', name: 'time', arguments: '{}' },
        ],
      },
      { role: 'tool', content: [{ type: 'tool-result', id: 'call_a', content: text('rain') }] },
      { role: 'tool', content: [{ type: 'tool-result', id: 'call_b', content: text('noon') }] },
    ])
  },

  'openai:responses:unmatched-results': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))
    const messages = ['No tool output found for function call call_a.', 'No tool call found']

    const unanswered = await respond(url, { ...hi, input: [{ role: 'user', content: 'Hi' }, call] })
    const uncalled = await respond(url, { ...hi, input: [result, call] })
    const twice = await respond(url, { ...hi, input: [call, result, result] })

    const error = (index: number, message: string | undefined) => ({
      param: `input[${index}].call_id`,
      message: expect.stringContaining(message ?? ''),
    })
    await expectError(unanswered, 400, error(1, messages[0]))
    await expectError(uncalled, 400, error(0, messages[1]))
    await expectError(twice, 400, error(2, messages[1]))
  },

  'openai:responses:limit': async (serve) => {
    const engine = scriptedEngine('one two three four five')
    const url = await serve(engine)

    const whole = await responseOf(await respond(url, { ...hi, max_output_tokens: 3 }))
    const events = await eventsOf(await respond(url, { ...streamed, max_output_tokens: 3 }))

    expect(whole).toMatchObject({
      status: 'incomplete',
      completed_at: null,
      incomplete_details: { reason: 'max_output_tokens' },
      output: [{ type: 'message', status: 'incomplete', content: [{ text: 'one two three' }] }],
      usage: { output_tokens: 3 },
    })
    expect(events.at(-1)?.type).toBe('response.incomplete')
    expect(bare(endOf(events))).toEqual(bare(whole))
  },

  'openai:responses:sampling': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    const plain = await asked(url, engine, {})
    const { sampling, maxTokens, overflow } = await asked(url, engine, {
      temperature: 0,
      top_p: 0.5,
      seed: 7,
      top_k: 5,
      max_output_tokens: 1,
      truncation: 'auto',
    })

    expect(plain).toMatchObject({ sampling: { temperature: 1, topP: 1 }, reasoning: 'auto' })
    expect(plain).not.toHaveProperty('overflow')
    expect({ sampling, maxTokens, overflow }).toEqual({
      sampling: { temperature: 0, topP: 0.5, seed: 7, topK: 5 },
      maxTokens: 1,
      overflow: 'truncate',
    })
  },

  'openai:responses:text-formats': async (serve) => {
    const engine = scriptedEngine('{}')
    const url = await serve(engine)
    const schema = { type: 'json_schema', name: 'place', schema: parameters, strict: true }
    const formats: unknown[] = []

    for (const text of [
      {},
      { format: { type: 'text' } },
      { format: { type: 'json_object' } },
      { format: { type: 'json_object', schema: parameters } },
      { format: { type: 'json_schema', schema: parameters } },
      { format: schema },
    ])
      formats.push((await asked(url, engine, { text })).format)
    formats.push((await asked(url, engine, { json_schema: parameters })).format)
    const bare = await respond(url, { ...hi, text: { format: { type: 'json_schema', name: 'a' } } })
    const unknown = await respond(url, { ...hi, text: { format: { type: 'xml' } } })

    expect(formats).toEqual([
      undefined,
      undefined,
      { type: 'json' },
      ...Array(4).fill({ type: 'json-schema', schema: parameters }),
    ])
    await expectError(bare, 400, { param: 'text.format.schema', code: 'missing_required_parameter' })
    await expectError(unknown, 400, { param: 'text.format.type', code: 'invalid_value' })
  },

  'openai:responses:engine-errors': async (serve) => {
    const about = (param: string) =>
      new LlmError('invalid_request', 'It cannot be kept.', { param, issue: 'unsupported' })
    const cases = [
      ['format', { text: { format: { type: 'json_object' } } }, 'text.format'],
      [
        'format.schema#/a',
        { text: { format: { type: 'json_schema', schema: {} } } },
        'text.format.schema#/a',
      ],
      ['tools[0].parameters#/b', {}, 'tools[0].parameters#/b'],
      ['format.source', { grammar: 'root ::= x' }, 'grammar'],
      ['format.pattern', { guided_regex: '(' }, 'guided_regex'],
    ] as const

    const found = await Promise.all(
      cases.map(async ([param, fields]) => {
        const url = await serve(scriptedEngine(about(param)))
        const { error } = (await (await respond(url, { ...hi, ...fields })).json()) as {
          error: { param: string }
        }
        return error.param
      }),
    )

    expect(found).toEqual(cases.map(([, , field]) => field))
  },

  'openai:responses:tools': async (serve) => {
    const engine = scriptedEngine(twoCalls)
    const url = await serve(engine)

    const response = await responseOf(await respond(url, { ...hi, tools, parallel_tool_calls: false }))

    expect(response.output).toEqual([
      { id: expect.stringMatching(/^fc_.+/), status: 'completed', ...call },
      {
        id: expect.stringMatching(/^fc_.+/),
        status: 'completed',
        type: 'function_call',
        call_id: 'call_b',
        name: 'time',
        arguments: '{}',
      },
    ])
    expect(new Set(response.output.map((item) => item.id)).size).toBe(2)
    const [request] = engine.requests
    expect(request && chatOf(request)).toMatchObject({
      tools: [
        { name: 'weather', parameters },
        { name: 'time', parameters },
      ],
      toolChoice: { mode: 'auto', parallel: false },
    })
  },

  'openai:responses:tool-choice': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const choices: unknown[] = []

    for (const tool_choice of [
      ...['auto', 'none', 'required', { type: 'function', name: 'time' }],
      { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'time' }, { type: 'mcp' }] },
    ])
      choices.push(chatOf(await asked(url, engine, { tools, tool_choice })).toolChoice)
    const refused = (tool_choice: unknown) => respond(url, { ...hi, tools, tool_choice })

    expect(choices).toEqual([
      { mode: 'auto' },
      { mode: 'none' },
      { mode: 'required' },
      { mode: 'required', names: ['time'] },
      { mode: 'auto', names: ['time'] },
    ])
    const unsupported = { param: 'tool_choice.type', code: 'unsupported_parameter' }
    await expectError(await refused({ type: 'web_search' }), 400, unsupported)
    const unknown = { param: 'tool_choice', code: 'invalid_value' }
    await expectError(await refused({ type: 'function', name: 'nope' }), 400, unknown)
    await expectError(await refused({ type: 'custom', name: 'nope' }), 400, unknown)
    await expectError(await respond(url, { ...hi, tool_choice: 'required' }), 400, unknown)
  },

  'openai:responses:hosted-tools': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const hosted = [
      ...['web_search', 'web_search_preview_2025_03_11', 'file_search', 'code_interpreter', 'mcp'],
      ...['local_shell', 'shell', 'apply_patch', 'image_generation', 'computer_use_preview', 'tool_search'],
    ].map((type) => ({ type }))

    const response = await responseOf(await respond(url, { ...hi, tools: [...hosted, ...tools] }))
    const alone = await asked(url, engine, { tools: hosted })
    const unknown = await respond(url, { ...hi, tools: [{ type: 'funktion', name: 'a' }] })
    const twice = await respond(url, { ...hi, tools: [{ type: 'mcp' }, ...tools, functionOf('time')] })

    expect(response.tools).toMatchObject(tools)
    expect(chatOf(alone)).not.toHaveProperty('tools')
    await expectError(unknown, 400, { param: 'tools[0].type', code: 'invalid_value' })
    await expectError(twice, 400, { param: 'tools[3].name', code: 'invalid_value' })
  },

  'openai:responses:custom-tools': async (serve) => {
    const input = 'print("é")\n'
    const engine = scriptedEngine(({ input: { kind } }) => [
      { call: 'run', id: `call_${kind}`, arguments: ['{"inp', 'ut":"print(\\"\\u00', 'e9\\")\\', 'n"}'] },
    ])
    const url = await serve(engine)
    const run = { type: 'custom', name: 'run', description: 'Runs code.' }
    const formats = [undefined, { type: 'text' }, { type: 'grammar', syntax: 'regex', definition: '[a-z]+' }]

    const whole = await responseOf(await respond(url, { ...hi, tools: [run] }))
    const events = await eventsOf(await respond(url, { ...streamed, tools: [run] }))
    const called = { type: 'custom_tool_call', call_id: 'call_a', name: 'run', input }
    const output = { type: 'custom_tool_call_output', call_id: 'call_a', output: 'é' }
    const later = await asked(url, engine, { tools: [run], input: [called, output] })
    const requests: GenerateRequest[] = []
    for (const format of formats)
      requests.push(
        await asked(url, engine, {
          tools: [{ ...run, format }],
          tool_choice: { type: 'custom', name: 'run' },
        }),
      )

    const item = {
      id: expect.stringMatching(/^ctc_.+/),
      ...called,
      call_id: 'call_chat',
      status: 'completed',
    }
    expect(whole.output).toEqual([item])
    expect(whole.tools).toEqual([{ ...run, format: { type: 'text' } }])
    const deltas = events.flatMap((event) =>
      event.type === 'response.custom_tool_call_input.delta' ? [event.delta] : [],
    )
    expect(deltas.length).toBeGreaterThan(1)
    expect(deltas.join('')).toBe(input)
    expect(events.slice(-4).map((event) => event.type)).toEqual([
      'response.custom_tool_call_input.delta',
      'response.custom_tool_call_input.done',
      'response.output_item.done',
      'response.completed',
    ])
    expect(events.at(-3)).toMatchObject({ input, output_index: 0 })
    expect(bare(endOf(events))).toEqual(bare(whole))
    expect(toTemplateMessages(later.input)).toMatchObject([
      { role: 'assistant', content: [{ name: 'run', arguments: JSON.stringify({ input }) }] },
      { role: 'tool', content: [{ id: 'call_a', content: [{ text: 'é' }] }] },
    ])
    const text = { type: 'string' }
    const parameters = requests.map((request) => chatOf(request).tools?.[0]?.parameters)
    expect(parameters).toMatchObject([
      { properties: { input: text } },
      { properties: { input: text } },
      { properties: { input: { ...text, pattern: '^(?:[a-z]+)$' } } },
    ])
    expect(requests.map((request) => chatOf(request).toolChoice)).toEqual(
      requests.map(() => ({ mode: 'required', names: ['run'] })),
    )
  },

  'openai:responses:namespaces': async (serve) => {
    const engine = scriptedEngine([
      { call: 'mcp__files__read', id: 'call_a', arguments: { path: 'a' } },
      { call: 'shell', id: 'call_b', arguments: {} },
    ])
    const url = await serve(engine)
    const files = {
      type: 'namespace',
      name: 'mcp__files',
      description: 'Files.',
      tools: [functionOf('read')],
    }
    const ending = { ...files, name: 'mcp__web__', tools: [functionOf('get')] }
    const own = { ...files, name: 'functions', tools: [functionOf('shell')] }
    const namespaced = { ...call, namespace: 'mcp__files', name: 'read' }

    const whole = await responseOf(await respond(url, { ...hi, tools: [files, ending, own] }))
    const events = await eventsOf(await respond(url, { ...streamed, tools: [files, ending, own] }))
    const tool_choice = { type: 'function', name: 'get', namespace: 'mcp__web__' }
    const later = await asked(url, engine, {
      tools: [files, ending],
      tool_choice,
      input: [namespaced, result],
    })

    expect(chatOf(engine.requests[0] as GenerateRequest).tools?.map(({ name }) => name)).toEqual([
      ...['mcp__files__read', 'mcp__web__get', 'shell'],
    ])
    expect(whole.output).toMatchObject([
      { type: 'function_call', name: 'read', namespace: 'mcp__files', arguments: '{"path":"a"}' },
      { type: 'function_call', name: 'shell', arguments: '{}' },
    ])
    expect(whole.output[1]).not.toHaveProperty('namespace')
    expect(bare(endOf(events))).toEqual(bare(whole))
    expect(whole.tools).toMatchObject([files, ending, own])
    expect(chatOf(later).toolChoice).toEqual({ mode: 'required', names: ['mcp__web__get'] })
    expect(toTemplateMessages(later.input)[0]?.content).toMatchObject([{ name: 'mcp__files__read' }])
  },

  'openai:responses:images': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const image = { type: 'input_image', image_url: 'data:image/png;base64,AA==', detail: 'high' }

    const request = await asked(url, engine, {
      input: [
        { role: 'user', content: [{ type: 'input_text', text: 'Look:' }, image] },
        call,
        { ...result, output: [image] },
      ],
    })

    const note = '[An image, which this model cannot see.]'
    expect(toTemplateMessages(request.input)).toMatchObject([
      { role: 'user', content: [{ text: `Look:\n${note}` }] },
      { role: 'assistant' },
      { role: 'tool', content: [{ content: [{ text: note }] }] },
    ])
  },

  'openai:responses:warm-up': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const warmUp = { ...hi, instructions: 'Be brief.', input: [], tools, generate: false }

    const whole = await responseOf(await respond(url, warmUp))
    const events = await eventsOf(await respond(url, { ...warmUp, stream: true }))
    const next = await asked(url, engine, { previous_response_id: whole.id, input: 'Hello' })

    expect(whole).toMatchObject({ status: 'completed', output: [], usage: { output_tokens: 1 } })
    expect(events.map(({ type }) => type)).toEqual([
      ...['response.created', 'response.in_progress', 'response.completed'],
    ])
    expect(bare(endOf(events))).toEqual(bare(whole))
    expect(toTemplateMessages(next.input)).toMatchObject([{ role: 'user' }])
  },

  'openai:responses:incomplete-call': async (serve) => {
    const url = await serve(scriptedEngine([{ call: 'weather', arguments: ['{"city":'] }]))

    const whole = await responseOf(await respond(url, { ...hi, tools }))
    const events = await eventsOf(await respond(url, { ...streamed, tools }))

    expect(whole).toMatchObject({
      status: 'incomplete',
      output: [{ type: 'function_call', status: 'incomplete', arguments: '{"city":' }],
    })
    expect(bare(endOf(events))).toEqual(bare(whole))
  },

  'openai:responses:reasoning': async (serve) => {
    const url = await serve(scriptedEngine([{ reasoning: 'Hm' }, { reasoning: '.' }, 'Hello']))

    const plain = await responseOf(await respond(url, hi))
    const summed = await responseOf(
      await respond(url, {
        ...hi,
        reasoning: { summary: 'auto' },
        include: ['reasoning.encrypted_content'],
      }),
    )

    const content = [{ type: 'reasoning_text', text: 'Hm.' }]
    const thought = { id: expect.stringMatching(/^rs_.+/), type: 'reasoning', status: 'completed', content }
    const summary = [{ type: 'summary_text', text: 'Hm.' }]
    expect(plain.output).toMatchObject([{ ...thought, summary: [] }, { type: 'message' }])
    expect(plain.output[0]).not.toHaveProperty('encrypted_content')
    expect(plain.usage).toMatchObject({ output_tokens: 3, output_tokens_details: { reasoning_tokens: 2 } })
    expect(summed.output[0]).toEqual({ ...thought, summary, encrypted_content: expect.any(String) })
  },

  'openai:responses:reasoning-effort': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    const none = await asked(url, engine, { reasoning: { effort: 'none' } })
    const high = await asked(url, engine, { reasoning: { effort: 'high' } })
    const unknown = await respond(url, { ...hi, reasoning: { effort: 'hard' } })

    expect(none.reasoning).toBe(false)
    expect(high.reasoning).toBe(true)
    expect(chatOf(high).templateOptions).toEqual({ reasoning_effort: 'high' })
    await expectError(unknown, 400, { param: 'reasoning.effort', code: 'invalid_value' })
  },

  'openai:responses:reasoning-sent-back': async (serve) => {
    const engine = scriptedEngine([{ reasoning: 'Hm — ' }, { reasoning: 'yes.' }, 'Hello'])
    const url = await serve(engine)
    const include = ['reasoning.encrypted_content']
    const { output } = await responseOf(await respond(url, { ...hi, include }))
    const [thought] = output as [OpenAI.Responses.ResponseReasoningItem]
    const { content, ...sealed } = thought

    const thoughts: unknown[] = []
    for (const one of [
      thought,
      sealed,
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm.' }] },
      { type: 'reasoning', summary: [], encrypted_content: 'gAAAAABoother' },
    ]) {
      const input = [
        { role: 'user', content: 'Hi' },
        one,
        ...output.slice(1),
        { role: 'user', content: 'Well?' },
      ]
      const request = await asked(url, engine, { input })
      thoughts.push(toTemplateMessages(request.input)[1]?.content.filter(({ type }) => type === 'reasoning'))
    }

    const said = (text: string) => [{ type: 'reasoning', text }]
    expect(thoughts).toEqual([said('Hm — yes.'), said('Hm — yes.'), said('Hm.'), []])
  },

  'openai:responses:empty-answer': async (serve) => {
    const url = await serve(scriptedEngine([{ reasoning: 'Hm.' }]))

    const { output, status } = await responseOf(await respond(url, hi))

    expect(status).toBe('completed')
    expect(output).toMatchObject([
      { type: 'reasoning' },
      { type: 'message', status: 'completed', content: [{ type: 'output_text', text: '' }] },
    ])
  },

  'openai:responses:logprobs': async (serve) => {
    const logprobs = [{ ...token('Hi', -0.5), top: [token('Hi', -0.5), token('Ho', -1.5)] }]
    const url = await serve(scriptedEngine([{ text: 'Hi', logprobs }]))
    const include = ['message.output_text.logprobs']

    const bare = await responseOf(await respond(url, { ...hi, include }))
    const whole = await responseOf(await respond(url, { ...hi, include, top_logprobs: 2 }))
    const events = await eventsOf(await respond(url, { ...streamed, top_logprobs: 2 }))

    const told = { ...wire('Hi', -0.5), top_logprobs: [wire('Hi', -0.5), wire('Ho', -1.5)] }
    expect(bare.output).toMatchObject([{ content: [{ logprobs: [{ ...told, top_logprobs: [] }] }] }])
    expect(whole.output).toMatchObject([{ content: [{ logprobs: [told] }] }])
    for (const type of ['response.output_text.delta', 'response.output_text.done'])
      expect(events.find((event) => event.type === type)).toMatchObject({ logprobs: [told] })
  },

  'openai:responses:stream': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const whole = await responseOf(await respond(url, hi))
    const events = await eventsOf(await respond(url, streamed))

    const [created] = events as [OpenAI.Responses.ResponseCreatedEvent]
    const item_id = expect.stringMatching(/^msg_.+/)
    const item = { id: item_id, type: 'message', role: 'assistant' }
    const at = { item_id, output_index: 0, content_index: 0 }
    const part = { type: 'output_text', text: 'Hello there.', annotations: [], logprobs: [] }
    const begun = { ...whole, ...created.response, output: [], status: 'in_progress', usage: null }
    expect(events.map(({ sequence_number: _, ...event }) => event)).toEqual([
      { type: 'response.created', response: { ...begun, completed_at: null } },
      { type: 'response.in_progress', response: { ...begun, completed_at: null } },
      {
        type: 'response.output_item.added',
        output_index: 0,
        item: { ...item, status: 'in_progress', content: [] },
      },
      { type: 'response.content_part.added', ...at, part: { ...part, text: '' } },
      { type: 'response.output_text.delta', ...at, delta: 'Hello', logprobs: [] },
      { type: 'response.output_text.delta', ...at, delta: ' there.', logprobs: [] },
      { type: 'response.output_text.done', ...at, text: 'Hello there.', logprobs: [] },
      { type: 'response.content_part.done', ...at, part },
      {
        type: 'response.output_item.done',
        output_index: 0,
        item: { ...item, status: 'completed', content: [part] },
      },
      { type: 'response.completed', response: expect.objectContaining({ id: created.response.id }) },
    ])
    expect(bare(endOf(events))).toEqual(bare(whole))
  },

  'openai:responses:stream-items': async (serve) => {
    const url = await serve(scriptedEngine([{ reasoning: 'Hm.' }, 'I look.', ...twoCalls]))

    const events = await eventsOf(await respond(url, { ...streamed, tools, reasoning: { summary: 'auto' } }))

    const text = (kind: string) => [`${kind}.delta`, `${kind}.done`]
    expect(events.map(({ type }) => type.replace('response.', ''))).toEqual([
      ...['created', 'in_progress'],
      ...['output_item.added', 'content_part.added', 'reasoning_summary_part.added'],
      ...['reasoning_text.delta', 'reasoning_summary_text.delta'],
      ...['reasoning_text.done', 'content_part.done'],
      ...['reasoning_summary_text.done', 'reasoning_summary_part.done', 'output_item.done'],
      ...['output_item.added', 'content_part.added', ...text('output_text'), 'content_part.done'],
      'output_item.done',
      ...['output_item.added', 'function_call_arguments.delta', ...text('function_call_arguments')],
      'output_item.done',
      ...['output_item.added', ...text('function_call_arguments'), 'output_item.done'],
      'completed',
    ])
    const indexes = events.flatMap((event) => ('output_index' in event ? [event.output_index] : []))
    expect(indexes).toEqual([...indexes].sort())
    const done = events.flatMap((event) => (event.type === 'response.output_item.done' ? [event.item] : []))
    expect(endOf(events).output).toEqual(done)
    expect(done).toMatchObject([{ type: 'reasoning' }, { type: 'message' }, call, { call_id: 'call_b' }])
    expect(new Set(done.map(({ id }) => id)).size).toBe(4)
  },

  'openai:responses:stream-fails': async (serve) => {
    const url = await serve(scriptedEngine(['Hel', new LlmError('upstream', 'The engine is gone.')]))

    const events = await eventsOf(await respond(url, streamed))

    expect(events.at(-1)?.type).toBe('response.failed')
    expect(endOf(events)).toMatchObject({
      status: 'failed',
      error: { code: 'server_error', message: 'The engine is gone.' },
      output: [{ type: 'message', status: 'incomplete', content: [{ text: 'Hel' }] }],
      usage: null,
    })
  },

  'openai:responses:errors-before-a-stream': async (serve) => {
    const tooLong = new LlmError('context_length', 'Long.', { inputTokens: 5_000, contextSize: 4_096 })
    const long = await serve(scriptedEngine(tooLong))
    const unknown = await serve(
      scriptedEngine(new LlmError('not_found', 'model "nope" not found', { param: 'model' })),
    )

    for (const stream of [false, true]) {
      await expectError(await respond(long, { ...hi, stream }), 400, {
        code: 'context_length_exceeded',
        message: expect.stringContaining("This model's maximum context length is 4096"),
      })
      await expectError(await respond(unknown, { ...hi, stream }), 404, {
        code: 'model_not_found',
        message: expect.stringContaining('nope'),
      })
    }
  },

  'openai:responses:client-disconnects': async (serve) => {
    const engine = scriptedEngine('word '.repeat(10_000), { delayMs: 1 })
    const url = await serve(engine)

    for (const stream of [false, true]) {
      const leaving = new AbortController()
      const answer = respond(url, { ...hi, stream }, leaving.signal).then((response) => response.text())
      const failure = answer.catch((error: Error) => error)
      await expect.poll(() => engine.running, soon).toBe(1)
      leaving.abort()
      await expect.poll(() => engine.running, soon).toBe(0)
      expect(await failure).toMatchObject({ name: 'AbortError' })
    }

    expect((await responseOf(await respond(url, { ...hi, max_output_tokens: 1 }))).status).toBe('incomplete')
  },

  'openai:responses:stored': async (serve) => {
    const url = await serve(scriptedEngine([{ reasoning: 'Hm.' }, 'Hello there.']))
    const at = (path: string, method = 'GET') => fetch(`${url}/v1/responses/${path}`, { method })
    const input = [
      { role: 'developer', content: 'Be kind.' },
      { role: 'user', content: [{ type: 'input_text', text: 'Hello' }] },
    ]

    const whole = await responseOf(await respond(url, { ...hi, input, metadata: { a: 'b' } }))
    const streamed = endOf(await eventsOf(await respond(url, { ...hi, stream: true })))
    const items = await (await at(`${whole.id}/input_items`)).json()

    expect(whole.store).toBe(true)
    expect(await responseOf(await at(whole.id))).toEqual(whole)
    expect(await responseOf(await at(streamed.id))).toEqual(streamed)
    const id = expect.stringMatching(/^msg_.+/)
    const message = { id, type: 'message', status: 'completed' }
    expect(items).toEqual({
      object: 'list',
      data: [
        { ...message, ...input[1] },
        { ...message, role: 'developer', content: [{ type: 'input_text', text: 'Be kind.' }] },
      ],
      first_id: id,
      last_id: id,
      has_more: false,
    })
    await expectError(await at(`${whole.id}/cancel`, 'POST'), 400, {
      message: 'Cannot cancel a synchronous response.',
    })
    await expectError(await at(`${whole.id}?stream=true`), 400, {
      ...{ param: 'stream', code: 'unsupported_parameter' },
    })

    const deleted = await at(whole.id, 'DELETE')
    expect(await deleted.json()).toEqual({ id: whole.id, object: 'response', deleted: true })
    for (const [method, path] of [
      ['GET', whole.id],
      ['DELETE', whole.id],
      ['GET', `${whole.id}/input_items`],
      ['POST', `${whole.id}/cancel`],
      ['GET', 'resp_nope'],
      ['POST', 'compact'],
    ] as const)
      await expectError(await at(path, method), 404, { code: null })
  },

  'openai:responses:previous': async (serve) => {
    const engine = scriptedEngine([{ reasoning: 'Hm.' }, 'Hello there.'])
    const url = await serve(engine)
    const first = await responseOf(await respond(url, { ...hi, instructions: 'Be brief.' }))
    const previous_response_id = first.id

    const second = await responseOf(await respond(url, { ...hi, input: 'Well?', previous_response_id }))
    const third = await asked(url, engine, { input: undefined, previous_response_id: second.id })
    const counted = await fetch(`${url}/v1/responses/input_tokens`, {
      method: 'POST',
      headers: json,
      body: JSON.stringify({ ...hi, input: 'Well?', previous_response_id }),
    })
    const items = await (await fetch(`${url}/v1/responses/${second.id}/input_items?order=asc`)).json()

    const user = (text: string) => ({ role: 'user', content: [{ type: 'text', text }] })
    const assistant = {
      role: 'assistant',
      content: [
        { type: 'reasoning', text: 'Hm.' },
        { type: 'text', text: 'Hello there.' },
      ],
    }
    expect(second.previous_response_id).toBe(first.id)
    expect(toTemplateMessages(third.input)).toEqual([user('Hello'), assistant, user('Well?'), assistant])
    expect(await counted.json()).toMatchObject({ input_tokens: second.usage?.input_tokens })
    expect(items).toMatchObject({
      data: [{ role: 'user' }, { type: 'reasoning' }, { role: 'assistant' }, { role: 'user' }],
    })

    const notFound = { param: 'previous_response_id', code: 'previous_response_not_found' }
    const unstored = await responseOf(await respond(url, { ...hi, store: false }))
    expect(unstored.store).toBe(false)
    for (const id of [unstored.id, 'resp_nope', 'a'.repeat(1_000), '\0'])
      await expectError(await respond(url, { ...hi, previous_response_id: id }), 400, notFound)
    await fetch(`${url}/v1/responses/${first.id}`, { method: 'DELETE' })
    await expectError(await respond(url, { ...hi, previous_response_id: second.id }), 400, {
      ...notFound,
      message: expect.stringContaining(`'${first.id}', which is not stored any more`),
    })
    const left = await fetch(`${url}/v1/responses/${second.id}/input_items`)
    expect(await left.json()).toMatchObject({ data: [{ content: [{ text: 'Well?' }] }] })
  },

  'openai:responses:item-references': async (serve) => {
    const engine = scriptedEngine(({ input }) =>
      toTemplateMessages(input).at(-1)?.role === 'tool' ? 'It rains.' : [{ reasoning: 'Hm.' }, ...twoCalls],
    )
    const url = await serve(engine)
    const { id, output } = await responseOf(await respond(url, { ...hi, tools }))
    const references = output.map((item) => ({ type: 'item_reference', id: item.id }))
    const results = [result, { ...result, call_id: 'call_b', output: 'noon' }]
    const input = [{ role: 'user', content: 'Hello' }, ...references, ...results]

    const next = await responseOf(await respond(url, { ...hi, tools, input }))
    const untyped = await responseOf(
      await respond(url, {
        ...hi,
        tools,
        input: input.map((item) => ('id' in item ? { id: item.id } : item)),
      }),
    )
    const listed = await (await fetch(`${url}/v1/responses/${next.id}/input_items?limit=2&order=asc`)).json()

    expect(toTemplateMessages((engine.requests[1] as GenerateRequest).input)).toMatchObject([
      { role: 'user' },
      {
        role: 'assistant',
        content: [{ text: 'Hm.' }, { id: 'call_a', arguments: '{"city":"Paris"}' }, { id: 'call_b' }],
      },
      { role: 'tool' },
      { role: 'tool' },
    ])
    expect(bare(untyped)).toEqual(bare(next))
    expect(listed).toMatchObject({ data: [{ role: 'user' }, output[0]], has_more: true })
    const after = `after=${(listed as { last_id: string }).last_id}`
    const rest = await fetch(`${url}/v1/responses/${next.id}/input_items?order=asc&${after}`)
    expect(await rest.json()).toMatchObject({ data: [...output.slice(1), ...results], has_more: false })

    await fetch(`${url}/v1/responses/${id}`, { method: 'DELETE' })
    const missing = { param: 'input', message: expect.stringContaining(String(output[0]?.id)) }
    await expectError(await respond(url, { ...hi, tools, input }), 404, missing)
    const left = await fetch(`${url}/v1/responses/${next.id}/input_items?order=asc`)
    expect(await left.json()).toMatchObject({ data: [{ role: 'user' }, ...results] })
    for (const [query, param, code] of [
      ['limit=0', 'limit', 'integer_below_min_value'],
      ['limit=101', 'limit', 'integer_above_max_value'],
      ['order=up', 'order', 'invalid_value'],
      ['after=nope', 'after', 'invalid_value'],
    ] as const)
      await expectError(await fetch(`${url}/v1/responses/${next.id}/input_items?${query}`), 400, {
        ...{ param, code },
      })
  },

  'openai:responses:failed-is-kept': async (serve) => {
    const url = await serve(
      scriptedEngine(({ input }) =>
        JSON.stringify(input).includes('Well?')
          ? 'Fine.'
          : ['Hel', new LlmError('upstream', 'The engine is gone.')],
      ),
    )

    const failed = endOf(await eventsOf(await respond(url, streamed)))
    const stored = await fetch(`${url}/v1/responses/${failed.id}`)

    expect(await responseOf(stored)).toEqual(failed)
    await expectError(await respond(url, { ...hi, previous_response_id: failed.id }), 400, {
      ...{ param: 'previous_response_id', code: 'previous_response_not_found' },
    })
  },

  'openai:conversations:whole': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const send = (path: string, method = 'GET', body?: object) =>
      fetch(`${url}/v1/conversations${path}`, {
        method,
        headers: json,
        ...(body && { body: JSON.stringify(body) }),
      })
    const items = [{ role: 'user', content: 'I am Ada.' }]
    const created = await send('', 'POST', { items, metadata: { topic: 'demo' } })
    const conversation = (await created.json()) as { readonly id: string }
    const { id } = conversation

    const response = await responseOf(await respond(url, { ...hi, conversation: id }))
    const request = await asked(url, engine, { input: 'Well?', conversation: { id } })
    const listed = (await (await send(`/${id}/items?order=asc`)).json()) as {
      readonly data: readonly { readonly id: string }[]
    }

    expect(conversation).toEqual({
      id: expect.stringMatching(/^conv_.+/),
      object: 'conversation',
      created_at: expect.any(Number),
      metadata: { topic: 'demo' },
    })
    expect(response).toMatchObject({ conversation: { id }, previous_response_id: null })
    expect(toTemplateMessages(request.input).map(({ role }) => role)).toEqual([
      ...['user', 'user', 'assistant', 'user'],
    ])
    expect(listed.data).toMatchObject([
      { role: 'user', content: [{ type: 'input_text', text: 'I am Ada.' }] },
      { role: 'user', content: [{ text: 'Hello' }] },
      response.output[0],
      { role: 'user' },
      { role: 'assistant' },
    ])
    const [first] = listed.data as [{ id: string }]
    expect(await (await send(`/${id}/items/${first.id}`)).json()).toEqual(first)
    expect(await (await send(`/${id}/items/${first.id}`, 'DELETE')).json()).toEqual(conversation)
    const metadata = { topic: 'other' }
    expect(await (await send(`/${id}`, 'POST', { metadata })).json()).toMatchObject({ id, metadata })
    expect(await (await send(`/${id}`)).json()).toMatchObject({ metadata })
    const more = await send(`/${id}/items`, 'POST', { items: [call, result] })
    expect(await more.json()).toMatchObject({ object: 'list', data: [call, result], has_more: false })
    const another = await asked(url, engine, { input: 'So?', previous_response_id: response.id })
    expect(toTemplateMessages(another.input)).toHaveLength(3)

    await fetch(`${url}/v1/responses/${response.id}`, { method: 'DELETE' })
    const left = await (await send(`/${id}/items?order=asc`)).json()
    expect(JSON.stringify(left)).not.toContain('"Hello"')
    expect(await (await send(`/${id}`, 'DELETE')).json()).toEqual({
      ...{ id, object: 'conversation.deleted', deleted: true },
    })
    for (const [path, method] of [
      [`/${id}`, 'GET'],
      [`/${id}`, 'DELETE'],
      [`/${id}/items`, 'GET'],
      [`/${id}/items/${first.id}`, 'GET'],
      ['/conv_nope', 'GET'],
    ] as const)
      await expectError(await send(path, method), 404, { code: null })
    await expectError(await respond(url, { ...hi, conversation: id }), 404, {})
    const both = { conversation: id, previous_response_id: response.id }
    await expectError(await respond(url, { ...hi, ...both }), 400, {
      ...{ param: 'conversation', code: 'invalid_value' },
    })
    for (const [body, param, code] of [
      [{ items: Array(21).fill(items[0]) }, 'items', 'array_above_max_length'],
      [{ items: [{ role: 'robot', content: 'a' }] }, 'items[0].role', 'invalid_value'],
      [{ metadata: { a: 5 } }, 'metadata', 'invalid_value'],
    ] as const)
      await expectError(await send('', 'POST', body), 400, { param, code })
  },

  'openai:responses:unsupported-state': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))
    const unsupported = (param: string) => ({ param, code: 'unsupported_parameter' })

    await expectError(await respond(url, { ...hi, prompt: { id: 'p' } }), 400, unsupported('prompt'))
    await expectError(await respond(url, { ...hi, background: true }), 400, unsupported('background'))
  },

  'openai:responses:input-tokens': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const body = { ...hi, instructions: 'Be brief.', tools }

    const counted = await fetch(`${url}/v1/responses/input_tokens`, {
      method: 'POST',
      headers: json,
      body: JSON.stringify(body),
    })
    const { usage } = await responseOf(await respond(url, body))

    expect(await counted.json()).toEqual({
      object: 'response.input_tokens',
      input_tokens: usage?.input_tokens,
    })
    expect(engine.requests).toHaveLength(1)
  },

  'openai:responses:bad-input': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const one = (item: unknown) => ({ ...hi, input: [item] })
    const custom = (format: object) => ({ ...hi, tools: [{ type: 'custom', name: 'a', format }] })
    const lark = { type: 'grammar', syntax: 'lark' }
    const namespace = (inner: readonly object[]) => ({
      ...hi,
      tools: [{ type: 'namespace', name: 'a', tools: inner }],
    })
    const part = (fields: object) => one({ role: 'user', content: [fields] })
    const pairs = Object.fromEntries(Array.from({ length: 17 }, (_, n) => [n, 'x']))

    for (const [param, code, body] of [
      ['model', 'missing_required_parameter', { input: 'a' }],
      ['model', 'invalid_type', { ...hi, model: 1 }],
      ['input', 'missing_required_parameter', { model: 'tiny' }],
      ['input', 'invalid_type', { ...hi, input: 5 }],
      ['input', 'empty_array', { ...hi, input: '' }],
      ['input', 'empty_array', { ...hi, input: [] }],
      ['input', 'array_above_max_length', { ...hi, input: Array(10_001).fill({}) }],
      ['input[0]', 'invalid_type', one('Hello')],
      ['input[0].type', 'missing_required_parameter', one({})],
      ['input[0].type', 'invalid_value', one({ type: 'zzz' })],
      ['input[0].name', 'missing_required_parameter', one({ type: 'custom_tool_call', call_id: 'a' })],
      ['tools[0].format.type', 'invalid_value', custom({ type: 'json' })],
      [
        'tools[0].format.syntax',
        'invalid_value',
        custom({ type: 'grammar', syntax: 'ebnf', definition: '' }),
      ],
      ['tools[0].format.definition', 'invalid_value', custom({ ...lark, definition: 'start: start' })],
      ['tools[0].tools[0].type', 'invalid_value', namespace([{ type: 'mcp' }])],
      ['tools[0].tools[1].name', 'invalid_value', namespace([functionOf('a'), functionOf('a')])],
      ['input[0].role', 'invalid_value', one({ role: 'robot', content: 'a' })],
      ['input[0].content', 'missing_required_parameter', one({ role: 'user' })],
      ['input[0].content[0].type', 'invalid_value', part({ type: 'smell' })],
      ['input[0].content[0]', 'unsupported_parameter', part({ type: 'input_file', file_id: 'file-1' })],
      ['input[0].name', 'missing_required_parameter', one({ ...call, name: undefined })],
      ['input[0].arguments', 'invalid_type', one({ ...call, arguments: {} })],
      ['input[0].output', 'missing_required_parameter', one({ ...result, output: undefined })],
      ['max_output_tokens', 'integer_below_min_value', { ...hi, max_output_tokens: 0 }],
      ['temperature', 'decimal_above_max_value', { ...hi, temperature: 3 }],
      ['top_logprobs', 'integer_above_max_value', { ...hi, top_logprobs: 21 }],
      ['include', 'invalid_type', { ...hi, include: 'a' }],
      ['truncation', 'invalid_value', { ...hi, truncation: 'maybe' }],
      ['stream', 'invalid_type', { ...hi, stream: 'yes' }],
      ['tools[0].type', 'missing_required_parameter', { ...hi, tools: [{}] }],
      ['tools[0].name', 'missing_required_parameter', { ...hi, tools: [{ type: 'function' }] }],
      ['text.verbosity', 'invalid_value', { ...hi, text: { verbosity: 'loud' } }],
      ['metadata', 'invalid_type', { ...hi, metadata: [] }],
      ['metadata', 'invalid_value', { ...hi, metadata: { a: 5 } }],
      ['metadata', 'invalid_value', { ...hi, metadata: pairs }],
      [null, 'invalid_type', []],
    ] as const) {
      const response = await respond(url, body)

      const said = await response.clone().text()
      expect(said).not.toMatch(/Invalid (input|option)|Too (big|small)/)
      expect(said.length).toBeLessThan(400)
      await expectError(response, 400, { param, code })
    }
    expect(engine.requests).toEqual([])
  },
} satisfies Partial<Record<OpenAIRequirementId, Check>>
