/** Tool calls, JSON, logprobs and reasoning of the OpenAI API. */
import { LlmError } from '@modelmount/core'
import type { GenerateRequest } from '@modelmount/core/engine'
import { type ScriptedChunk, type ScriptedEngine, scriptedEngine } from '@modelmount/core/testing'
import type OpenAI from 'openai'
import { expect } from 'vitest'
import { chat, chunksOf, completionOf, expectError, finishOf, hello, joined, json } from './calls.ts'
import type { OpenAIRequirementId } from './requirements.ts'
import type { Check } from './suite.ts'

const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const functionOf = (name: string, more: object = { parameters }): object => ({
  type: 'function',
  function: { name, ...more },
})
const tools = [functionOf('weather'), functionOf('time')]
const named = (name: string) => ({ type: 'function', function: { name } })

/** Sends a chat request, expects a 200, and resolves with the last request to the engine. */
async function asked(url: string, engine: ScriptedEngine, fields: object): Promise<GenerateRequest> {
  const response = await chat(url, { ...hello, ...fields })
  expect(response.status).toBe(200)
  await response.text()
  return engine.requests.at(-1) as GenerateRequest
}

const complete = (url: string, body: object): Promise<Response> =>
  fetch(`${url}/v1/completions`, { method: 'POST', headers: json, body: JSON.stringify(body) })

const respond = (url: string, body: object): Promise<Response> =>
  fetch(`${url}/v1/responses`, {
    method: 'POST',
    headers: json,
    body: JSON.stringify({ model: 'tiny', ...body }),
  })

const inputOf = ({ input }: GenerateRequest) => {
  expect(input.kind).toBe('chat')
  return input as Extract<GenerateRequest['input'], { kind: 'chat' }>
}

const token = (text: string, logprob: number) => ({ id: 1, text, bytes: [...Buffer.from(text)], logprob })
const drawn = (text: string, logprob: number, other: string): ScriptedChunk => ({
  text,
  logprobs: [{ ...token(text, logprob), top: [token(text, logprob), token(other, logprob - 1)] }],
})
const wire = (text: string, logprob: number) => ({ token: text, logprob, bytes: [...Buffer.from(text)] })

const twoCalls: readonly ScriptedChunk[] = [
  { call: 'weather', id: 'call_a', arguments: ['{"city":', '"Paris"}'] },
  { call: 'time', id: 'call_b' },
]

type Message = OpenAI.ChatCompletionMessage & { reasoning_content?: string }
type Delta = OpenAI.ChatCompletionChunk.Choice.Delta & { reasoning_content?: string }
const deltasOf = (chunks: readonly OpenAI.ChatCompletionChunk[]): readonly Delta[] =>
  chunks.map(({ choices }) => choices[0]?.delta ?? {})

export const output = {
  'openai:chat:tools': async (serve) => {
    const engine = scriptedEngine(twoCalls)
    const url = await serve(engine)

    const response = await chat(url, { ...hello, tools })

    const { choices } = await completionOf(response)
    expect(choices).toEqual([
      {
        index: 0,
        message: {
          role: 'assistant',
          content: null,
          refusal: null,
          tool_calls: [
            { id: 'call_a', type: 'function', function: { name: 'weather', arguments: '{"city":"Paris"}' } },
            { id: 'call_b', type: 'function', function: { name: 'time', arguments: '{}' } },
          ],
        },
        logprobs: null,
        finish_reason: 'tool_calls',
      },
    ])
    expect(engine.requests.map((request) => inputOf(request).tools)).toEqual([
      [
        { name: 'weather', parameters },
        { name: 'time', parameters },
      ],
    ])
  },

  'openai:chat:stream-tools': async (serve) => {
    const url = await serve(scriptedEngine(twoCalls))

    const chunks = await chunksOf(await chat(url, { ...hello, tools, stream: true }))

    const first = { id: 'call_a', type: 'function', function: { name: 'weather', arguments: '' } }
    const second = { id: 'call_b', type: 'function', function: { name: 'time', arguments: '' } }
    expect(deltasOf(chunks)).toEqual([
      { role: 'assistant', content: null, refusal: null },
      { tool_calls: [{ index: 0, ...first }] },
      { tool_calls: [{ index: 0, function: { arguments: '{"city":' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '"Paris"}' } }] },
      { tool_calls: [{ index: 1, ...second }] },
      { tool_calls: [{ index: 1, function: { arguments: '{}' } }] },
      {},
    ])
    expect(chunks.map(finishOf)).toEqual([...Array(6).fill(null), 'tool_calls'])
  },

  'openai:chat:text-beside-calls': async (serve) => {
    const url = await serve(scriptedEngine(['I look.', { call: 'time' }]))

    const { choices } = await completionOf(await chat(url, { ...hello, tools }))
    const chunks = await chunksOf(await chat(url, { ...hello, tools, stream: true }))

    expect(choices[0]).toMatchObject({
      message: { content: 'I look.', tool_calls: [named('time')] },
      finish_reason: 'tool_calls',
    })
    expect(joined(chunks)).toBe('I look.')
    expect(chunks.map(finishOf).at(-1)).toBe('tool_calls')
  },

  'openai:chat:call-over-the-token-limit': async (serve) => {
    const url = await serve(scriptedEngine([{ call: 'time' }, ...twoCalls.slice(0, 1)]))
    const cut = { ...hello, tools, max_tokens: 2 }

    const { choices } = await completionOf(await chat(url, cut))
    const chunks = await chunksOf(await chat(url, { ...cut, stream: true }))

    expect(choices[0]?.finish_reason).toBe('length')
    expect(choices[0]?.message.tool_calls).toEqual([
      { id: 'call_0', type: 'function', function: { name: 'time', arguments: '{}' } },
    ])
    expect(chunks.map(finishOf).at(-1)).toBe('length')
  },

  'openai:chat:incomplete-call': async (serve) => {
    const url = await serve(scriptedEngine([{ call: 'weather', arguments: ['{"city":'] }]))

    const { choices } = await completionOf(await chat(url, { ...hello, tools }))
    const chunks = await chunksOf(await chat(url, { ...hello, tools, stream: true }))

    expect(choices[0]).toMatchObject({ message: { content: '' }, finish_reason: 'stop' })
    expect(choices[0]?.message).not.toHaveProperty('tool_calls')
    expect(chunks.map(finishOf).at(-1)).toBe('length')
  },

  'openai:chat:tool-choice': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const allowed = (mode: string) => ({
      type: 'allowed_tools',
      allowed_tools: { mode, tools: [named('time')] },
    })

    const choices: unknown[] = []
    for (const tool_choice of [
      ...[undefined, null, 'auto', 'none', 'required'],
      ...[named('time'), allowed('auto'), allowed('required')],
    ])
      choices.push(inputOf(await asked(url, engine, { tools, tool_choice })).toolChoice)

    expect(choices).toEqual([
      { mode: 'auto' },
      { mode: 'auto' },
      { mode: 'auto' },
      { mode: 'none' },
      { mode: 'required' },
      { mode: 'required', names: ['time'] },
      { mode: 'auto', names: ['time'] },
      { mode: 'required', names: ['time'] },
    ])
  },

  'openai:transport:head': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    for (const path of [
      'models',
      'models/tiny',
      'models/none',
      'responses/resp_none',
      'conversations/none',
      'files',
    ]) {
      const [head, whole] = await Promise.all(
        ['HEAD', 'GET'].map((method) => fetch(`${url}/v1/${path}`, { method })),
      )

      expect([path, head?.status, await head?.text()]).toEqual([path, whole?.status, ''])
      expect(head?.headers.get('content-type')).toBe(whole?.headers.get('content-type'))
    }
  },

  'openai:chat:prompt-end': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const messages = [...hello.messages, { role: 'assistant', content: 'Hello' }]

    const ends: unknown[] = []
    for (const fields of [
      {},
      { add_generation_prompt: null, continue_final_message: null },
      { continue_final_message: true },
      { add_generation_prompt: false, continue_final_message: true },
      { add_generation_prompt: false, continue_final_message: 'content' },
      { add_generation_prompt: true },
      { continue_final_message: false },
      { add_generation_prompt: true, continue_final_message: false },
      { add_generation_prompt: false },
    ])
      ends.push(inputOf(await asked(url, engine, { messages, ...fields })).promptEnd)

    expect(ends).toEqual([
      ...[undefined, undefined, 'continue', 'continue', 'continue'],
      ...['generation-prompt', 'generation-prompt', 'generation-prompt', 'none'],
    ])
    const response = await respond(url, { input: messages, continue_final_message: false })
    expect(response.status).toBe(200)
    expect(inputOf(engine.requests.at(-1) as GenerateRequest).promptEnd).toBe('generation-prompt')
  },

  'openai:chat:prompt-end-errors': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const called = {
      role: 'assistant',
      tool_calls: [{ id: 'a', ...named('f'), function: { name: 'f', arguments: '' } }],
    }
    const result = { role: 'tool', tool_call_id: 'a', content: '5' }
    const begun = [...hello.messages, { role: 'assistant', content: 'Hello' }]
    const both = { add_generation_prompt: true, continue_final_message: true }

    for (const [messages, fields, code] of [
      [begun, both, 'invalid_value'],
      [hello.messages, { continue_final_message: true }, 'invalid_value'],
      [[...hello.messages, called, result], { continue_final_message: true }, 'invalid_value'],
      [begun, { continue_final_message: 'reasoning_content' }, 'unsupported_parameter'],
      [begun, { continue_final_message: 1 }, 'invalid_type'],
    ] as const) {
      const expected = { param: 'continue_final_message', code }
      await expectError(await chat(url, { ...hello, messages, ...fields }), 400, expected)
    }
    await expectError(await chat(url, { ...hello, add_generation_prompt: 'no' }), 400, {
      param: 'add_generation_prompt',
      code: 'invalid_type',
    })
    expect(engine.requests).toEqual([])
  },

  'openai:chat:progress': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const fields = { return_progress: true, timings_per_token: true }
    const sends = [
      (more: object) => chat(url, { ...hello, ...more }),
      (more: object) => complete(url, { model: 'tiny', prompt: 'Hi', ...more }),
      (more: object) => respond(url, { input: 'Hi', ...more }),
    ]

    for (const send of sends) {
      const asked = await (await send({ ...fields, stream: true })).text()
      const plain = await (await send({ stream: true })).text()

      expect(asked).toMatch(/"prompt_progress":\{"total":1,"cache":0,"processed":1,"time_ms":0\}/)
      expect(asked).toMatch(/"timings":\{"cache_n":0,"prompt_n":1,.*"predicted_n":2,/)
      expect(plain).not.toMatch(/prompt_progress|timings/)
      const whole = await (await send(fields)).text()
      expect([whole.includes('prompt_progress'), whole.includes('"timings":{')]).toEqual([false, true])
    }
    expect(engine.requests.map(({ returnProgress }) => returnProgress)).toEqual(
      sends.flatMap(() => [true, undefined, undefined]),
    )
    await expectError(await chat(url, { ...hello, return_progress: 1 }), 400, {
      param: 'return_progress',
      code: 'invalid_type',
    })
  },

  'openai:chat:tool-choice-of-missing-tool': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const allowed = { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [named('nope')] } }

    for (const fields of [
      { tool_choice: 'required' },
      { tool_choice: 'required', tools: [] },
      { tool_choice: named('nope') },
      { tool_choice: named('nope'), tools },
      { tool_choice: allowed, tools },
    ])
      await expectError(await chat(url, { ...hello, ...fields }), 400, {
        param: 'tool_choice',
        code: 'invalid_value',
      })
    expect(engine.requests).toEqual([])
  },

  'openai:chat:parallel-tool-calls': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    const choices: unknown[] = []
    for (const parallel_tool_calls of [true, null, false])
      choices.push(inputOf(await asked(url, engine, { tools, parallel_tool_calls })).toolChoice)

    expect(choices).toEqual([{ mode: 'auto' }, { mode: 'auto' }, { mode: 'auto', parallel: false }])
    expect(inputOf(await asked(url, engine, { parallel_tool_calls: false }))).not.toHaveProperty('toolChoice')
  },

  'openai:chat:function-fields': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const all = { description: 'Says it.', parameters, strict: true }

    const request = await asked(url, engine, { tools: [functionOf('full', all), functionOf('bare', {})] })

    expect(inputOf(request).tools).toEqual([
      { name: 'full', ...all },
      { name: 'bare', parameters: { type: 'object', properties: {}, additionalProperties: false } },
    ])
  },

  'openai:chat:custom-tools': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await chat(url, { ...hello, tools: [{ type: 'custom', custom: { name: 'shell' } }] })

    await expectError(response, 400, { param: 'tools[0].type', code: 'unsupported_parameter' })
  },

  'openai:chat:tool-messages': async (serve) => {
    const engine = scriptedEngine('It is noon.')
    const url = await serve(engine)
    const call = (id: string, name: string, json: string) => ({
      id,
      type: 'function',
      function: { name, arguments: json },
    })

    const request = await asked(url, engine, {
      messages: [
        ...hello.messages,
        {
          role: 'assistant',
          content: null,
          refusal: null,
          tool_calls: [call('call_a', 'weather', '{"city":"Paris"}'), call('call_b', 'time', '')],
        },
        { role: 'tool', tool_call_id: 'call_b', content: 'noon' },
        { role: 'tool', tool_call_id: 'call_a', content: [{ type: 'text', text: 'rain' }] },
        { role: 'user', content: 'And?' },
      ],
    })

    const result = (id: string, text: string) => ({
      role: 'tool',
      content: [{ type: 'tool-result', id, content: [{ type: 'text', text }] }],
    })
    expect(inputOf(request).messages.slice(1)).toEqual([
      {
        role: 'assistant',
        content: [
          { type: 'tool-call', id: 'call_a', name: 'weather', arguments: '{"city":"Paris"}' },
          { type: 'tool-call', id: 'call_b', name: 'time', arguments: '{}' },
        ],
      },
      result('call_b', 'noon'),
      result('call_a', 'rain'),
      { role: 'user', content: [{ type: 'text', text: 'And?' }] },
    ])
  },

  'openai:chat:unmatched-tool-messages': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))
    const call = { id: 'call_1', type: 'function', function: { name: 'now', arguments: '{}' } }
    const calling = { role: 'assistant', content: null, tool_calls: [call] }
    const result = (id: string) => ({ role: 'tool', tool_call_id: id, content: 'noon' })
    const send = (...messages: object[]) =>
      chat(url, { model: 'tiny', messages: [...hello.messages, ...messages] })

    const unasked = {
      message:
        "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
    }
    const unanswered = {
      message: expect.stringMatching(
        /^An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'\..* call_1$/,
      ),
      param: 'messages[1].role',
    }
    await expectError(await send(result('call_1')), 400, { ...unasked, param: 'messages[1].role' })
    await expectError(await send(calling, result('call_2')), 400, { ...unasked, param: 'messages[2].role' })
    await expectError(
      await send(calling, result('call_1'), { role: 'user', content: 'And?' }, result('call_1')),
      400,
      { ...unasked, param: 'messages[4].role' },
    )
    await expectError(await send(calling), 400, unanswered)
    await expectError(await send(calling, { role: 'user', content: 'And?' }), 400, unanswered)
  },

  'openai:chat:response-formats': async (serve) => {
    const engine = scriptedEngine('{}')
    const url = await serve(engine)
    const schema = { type: 'object', properties: { a: { $ref: '#/$defs/b' } }, $defs: { b: { const: 1 } } }

    const formats: unknown[] = []
    for (const response_format of [
      { type: 'text' },
      { type: 'json_object' },
      { type: 'json_schema', json_schema: { name: 'a', description: 'It.', strict: true, schema } },
      { type: 'json_schema', json_schema: { name: 'a-b_9', schema } },
      { type: 'json_schema', json_schema: { schema } },
      { type: 'json_object', schema },
      { type: 'json_schema', json_schema: { name: 'a' } },
    ])
      formats.push((await asked(url, engine, { response_format })).format)
    formats.push((await asked(url, engine, { json_schema: schema })).format)

    const held = { type: 'json-schema', schema }
    expect(formats).toEqual([undefined, { type: 'json' }, held, held, held, held, { type: 'json' }, held])
  },

  'openai:chat:response-format-beside-tools': async (serve) => {
    const engine = scriptedEngine('{}')
    const url = await serve(engine)
    const response_format = { type: 'json_object' }

    const formats: unknown[] = []
    for (const tool_choice of ['auto', 'none', 'required', named('time')])
      formats.push((await asked(url, engine, { tools, tool_choice, response_format })).format)

    expect(formats).toEqual([{ type: 'json' }, { type: 'json' }, undefined, undefined])
  },

  'openai:chat:engine-errors': async (serve) => {
    const param = 'format.schema#/properties/a/pattern'
    const url = await serve(
      scriptedEngine(new LlmError('invalid_request', 'No.', { param, issue: 'unsupported' })),
    )
    const formats = [
      [
        { response_format: { type: 'json_schema', json_schema: { schema: {} } } },
        'response_format.json_schema.schema',
      ],
      [{ response_format: { type: 'json_object', schema: {} } }, 'response_format.schema'],
      [{ json_schema: {} }, 'json_schema'],
      [{ guided_json: {} }, 'guided_json'],
      [{ structured_outputs: { json: {} } }, 'structured_outputs.json'],
    ] as const

    for (const [fields, field] of formats)
      for (const stream of [false, true]) {
        const expected = { param: `${field}#/properties/a/pattern`, code: 'unsupported_parameter' }
        await expectError(await chat(url, { ...hello, ...fields, stream }), 400, expected)
        const text = { model: 'tiny', prompt: 'a', ...fields, stream }
        await expectError(await complete(url, text), 400, expected)
      }
  },

  'openai:chat:response-format-incomplete': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))
    const schema = { type: 'object' }
    const send = (json_schema?: object) =>
      chat(url, { ...hello, response_format: { type: 'json_schema', json_schema } })

    const missing = { code: 'missing_required_parameter' }
    await expectError(await send(), 400, { param: 'response_format.json_schema', ...missing })
    await expectError(await send({ schema: 123 }), 400, {
      param: 'response_format.json_schema.schema',
      code: 'invalid_type',
    })
    for (const name of ['', 'a b', 'ä', 'a'.repeat(65)])
      await expectError(await send({ name, schema }), 400, {
        param: 'response_format.json_schema.name',
        code: 'invalid_value',
      })
  },

  'openai:chat:grammar': async (serve) => {
    const engine = scriptedEngine('yes')
    const url = await serve(engine)
    const grammar = 'root ::= "yes" | "no"'

    expect((await asked(url, engine, { grammar })).format).toEqual({ type: 'grammar', source: grammar })
    expect((await asked(url, engine, { grammar: '' })).format).toBeUndefined()

    const both = await chat(url, { ...hello, grammar, response_format: { type: 'json_object' } })
    await expectError(both, 400, { param: 'grammar', code: 'invalid_value' })
  },

  'openai:chat:structured-outputs': async (serve) => {
    const engine = scriptedEngine('yes')
    const url = await serve(engine)
    const schema = { type: 'object', properties: { a: { type: 'string' } } }
    const source = 'root ::= "yes" | "no"'
    const constraints = [
      [{ guided_json: schema }, { type: 'json-schema', schema }],
      [{ guided_json: JSON.stringify(schema) }, { type: 'json-schema', schema }],
      [{ guided_regex: '[ab]+' }, { type: 'regex', pattern: '[ab]+' }],
      [{ guided_choice: ['yes', 'no'] }, { type: 'choice', choices: ['yes', 'no'] }],
      [{ guided_grammar: source }, { type: 'grammar', source }],
      [{ structured_outputs: { json: schema } }, { type: 'json-schema', schema }],
      [{ structured_outputs: { json_object: true } }, { type: 'json' }],
      [{ structured_outputs: { regex: '[ab]+', json: null } }, { type: 'regex', pattern: '[ab]+' }],
      [{ structured_outputs: { choice: ['yes'] } }, { type: 'choice', choices: ['yes'] }],
      [{ structured_outputs: { grammar: source } }, { type: 'grammar', source }],
      [{ structured_outputs: { json_object: false } }, undefined],
      [{ structured_outputs: null, guided_choice: null }, undefined],
    ] as const

    for (const [fields, format] of constraints) {
      expect((await asked(url, engine, fields)).format).toEqual(format)
      for (const response of [
        await complete(url, { model: 'tiny', prompt: 'Hi', ...fields }),
        await respond(url, { input: 'Hi', ...fields }),
      ]) {
        expect(response.status).toBe(200)
        expect(engine.requests.at(-1)?.format).toEqual(format)
      }
    }
  },

  'openai:chat:structured-outputs-errors': async (serve) => {
    const engine = scriptedEngine('yes')
    const url = await serve(engine)
    const forced = { tools, tool_choice: 'required' }
    const within = (name: string) => `structured_outputs.${name}`

    for (const [fields, param, code] of [
      [{ guided_json: 5 }, 'guided_json', 'invalid_type'],
      [{ guided_json: '{' }, 'guided_json', 'invalid_type'],
      [{ guided_json: '['.repeat(200) + ']'.repeat(200) }, 'guided_json', 'invalid_type'],
      [{ guided_choice: [] }, 'guided_choice', 'empty_array'],
      [{ guided_choice: ['a', ''] }, 'guided_choice[1]', 'invalid_value'],
      [{ guided_regex: 5 }, 'guided_regex', 'invalid_type'],
      [{ guided_whitespace_pattern: ' *' }, 'guided_whitespace_pattern', 'unsupported_parameter'],
      [{ guided_regex: 'a', guided_choice: ['a'] }, 'guided_regex', 'invalid_value'],
      [{ guided_choice: ['a'], response_format: { type: 'json_object' } }, 'guided_choice', 'invalid_value'],
      [{ guided_choice: ['a'], ...forced }, 'guided_choice', 'invalid_value'],
      [{ structured_outputs: { regex: 'a', choice: ['a'] } }, within('regex'), 'invalid_value'],
      [{ structured_outputs: { structural_tag: '{}' } }, within('structural_tag'), 'unsupported_parameter'],
      [
        { structured_outputs: { whitespace_pattern: ' ' } },
        within('whitespace_pattern'),
        'unsupported_parameter',
      ],
      [{ structured_outputs: { lark: 'start: "a"' } }, 'structured_outputs', 'invalid_value'],
    ] as const)
      await expectError(await chat(url, { ...hello, ...fields }), 400, { param, code })
    expect(engine.requests).toEqual([])
  },

  'openai:chat:logprobs': async (serve) => {
    const url = await serve(scriptedEngine([drawn('Hé', -0.5, 'Ho'), drawn(' you', -0.25, ' me')]))

    const answer = await completionOf(await chat(url, { ...hello, logprobs: true, top_logprobs: 2 }))

    expect(answer.choices[0]?.logprobs).toEqual({
      content: [
        { ...wire('Hé', -0.5), top_logprobs: [wire('Hé', -0.5), wire('Ho', -1.5)] },
        { ...wire(' you', -0.25), top_logprobs: [wire(' you', -0.25), wire(' me', -1.25)] },
      ],
      refusal: null,
    })
  },

  'openai:chat:logprobs-without-alternatives': async (serve) => {
    const engine = scriptedEngine([drawn('Hi', Number.NEGATIVE_INFINITY, 'Ho')])
    const url = await serve(engine)

    const answer = await completionOf(await chat(url, { ...hello, logprobs: true }))
    const unasked = await completionOf(await chat(url, { ...hello, logprobs: false, top_logprobs: 0 }))

    expect(answer.choices[0]?.logprobs?.content).toEqual([{ ...wire('Hi', -9999), top_logprobs: [] }])
    expect(unasked.choices[0]?.logprobs).toBeNull()
    expect(engine.requests.map(({ logprobs }) => logprobs)).toEqual([0, undefined])
  },

  'openai:chat:stream-logprobs': async (serve) => {
    const url = await serve(scriptedEngine([drawn('Hi', -0.5, 'Ho'), drawn(' you', -0.25, ' me')]))

    const chunks = await chunksOf(
      await chat(url, { ...hello, logprobs: true, top_logprobs: 1, stream: true }),
    )

    const told = chunks.map(({ choices }) => choices[0]?.logprobs)
    expect(told).toEqual([
      null,
      { content: [{ ...wire('Hi', -0.5), top_logprobs: [wire('Hi', -0.5)] }], refusal: null },
      { content: [{ ...wire(' you', -0.25), top_logprobs: [wire(' you', -0.25)] }], refusal: null },
      null,
    ])
    expect(told.flatMap((one) => one?.content?.map(({ token }) => token) ?? []).join('')).toBe(joined(chunks))
  },

  'openai:chat:reasoning': async (serve) => {
    const url = await serve(scriptedEngine([{ reasoning: 'Hm' }, { reasoning: '.' }, 'Hello', ' there.']))

    const whole = await completionOf(await chat(url, hello))
    const response = await chat(url, { ...hello, stream: true, stream_options: { include_usage: true } })
    const chunks = await chunksOf(response)

    const usage = { completion_tokens: 4, completion_tokens_details: { reasoning_tokens: 2 } }
    expect(whole.choices[0]?.message as Message).toEqual({
      role: 'assistant',
      content: 'Hello there.',
      refusal: null,
      reasoning_content: 'Hm.',
      reasoning: 'Hm.',
    })
    expect(whole.usage).toMatchObject(usage)
    expect(deltasOf(chunks).slice(1, -2)).toEqual([
      { reasoning_content: 'Hm', reasoning: 'Hm' },
      { reasoning_content: '.', reasoning: '.' },
      { content: 'Hello' },
      { content: ' there.' },
    ])
    expect(chunks.at(-1)?.usage).toMatchObject(usage)
  },

  'openai:chat:reasoning-effort': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const thinks = async (fields: object) => {
      const request = await asked(url, engine, fields)
      return [request.reasoning, inputOf(request).templateOptions]
    }

    expect(await thinks({})).toEqual(['auto', undefined])
    expect(await thinks({ reasoning_effort: 'none' })).toEqual([false, undefined])
    for (const reasoning_effort of ['minimal', 'low', 'medium', 'high', 'xhigh', 'max'])
      expect(await thinks({ reasoning_effort })).toEqual([true, { reasoning_effort }])
    const response = await chat(url, { ...hello, reasoning_effort: 'maybe' })
    await expectError(response, 400, { param: 'reasoning_effort', code: 'invalid_value' })
  },

  'openai:chat:template-variables': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    const request = await asked(url, engine, {
      chat_template_kwargs: { enable_thinking: false, tone: 'dry' },
    })

    expect(request.reasoning).toBe(false)
    expect(inputOf(request).templateOptions).toEqual({ enable_thinking: false, tone: 'dry' })
  },

  'openai:chat:refusals-sent-back': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)
    const said = { role: 'assistant', content: [{ type: 'refusal', refusal: 'I will not.' }] }

    const request = await asked(url, engine, { messages: [...hello.messages, said, ...hello.messages] })

    expect(inputOf(request).messages[1]?.content).toEqual([{ type: 'text', text: 'I will not.' }])
  },

  'openai:chat:reasoning-sent-back': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    for (const field of ['reasoning_content', 'reasoning']) {
      const said = { role: 'assistant', content: 'Hi.', [field]: 'Hm.' }
      const request = await asked(url, engine, { messages: [...hello.messages, said, ...hello.messages] })

      expect(inputOf(request).messages[1]).toEqual({
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'Hm.' },
          { type: 'text', text: 'Hi.' },
        ],
      })
    }
  },
} satisfies Partial<Record<OpenAIRequirementId, Check>>
