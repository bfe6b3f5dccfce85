import { expect, test } from 'vitest'
import { z } from 'zod'
import { createLlm } from '../../create-llm.ts'
import type { GenerateRequest } from '../../engine/request.ts'
import {
  type ScriptedAnswer,
  type ScriptedEngineOptions,
  scriptedEngine,
} from '../../testing/scripted-engine.ts'
import type { ChatStep } from './result.ts'

/** An engine that answers with one script after the other, and repeats the last one. */
async function openLlm(answers: readonly ScriptedAnswer[], options?: ScriptedEngineOptions) {
  let next = 0
  const engine = scriptedEngine(() => answers[Math.min(next++, answers.length - 1)] ?? '', options)
  return { engine, llm: await createLlm({ engine, models: [] }) }
}

const city = z.object({ city: z.string() })
const callWeather = (name: string, id: string) =>
  ({ call: 'weather', id, arguments: { city: name } }) as const
const inputOf = (request: GenerateRequest | undefined) =>
  request?.input.kind === 'chat' ? request.input : undefined
const textsOf = (request: GenerateRequest | undefined) =>
  inputOf(request)?.messages.map(({ role, content }) => [role, JSON.stringify(content)])

test('a tool is run, and the model answers with its result', async () => {
  const { engine, llm } = await openLlm([['Let me see.', callWeather('Rome', 'a')], 'Sunny.'])
  const tools = {
    weather: {
      description: 'Weather of a city',
      parameters: city,
      execute: ({ city }: { city: string }) => ({ city, sky: 'sunny' }),
    },
  }

  const { text, toolCalls, messages, steps, usage, finishReason } = await llm.chat('How is Rome?', {
    system: 'Be brief.',
    tools,
  })

  expect([text, toolCalls, finishReason]).toEqual(['Sunny.', [], 'stop'])
  expect(messages).toEqual([
    {
      role: 'assistant',
      content: 'Let me see.',
      toolCalls: [{ id: 'a', name: 'weather', arguments: { city: 'Rome' } }],
    },
    { role: 'tool', toolCallId: 'a', content: '{"city":"Rome","sky":"sunny"}' },
    { role: 'assistant', content: 'Sunny.' },
  ])
  expect(
    steps.map(({ text, toolCalls, toolResults }) => [text, toolCalls.length, toolResults.length]),
  ).toEqual([
    ['Let me see.', 1, 1],
    ['Sunny.', 0, 0],
  ])
  // One token per message and per tool: 3 in the first prompt, 5 in the second.
  expect(usage).toMatchObject({ inputTokens: 8, outputTokens: 3 })
  expect(textsOf(engine.requests[1])).toEqual([
    ['system', '[{"type":"text","text":"Be brief."}]'],
    ['user', '[{"type":"text","text":"How is Rome?"}]'],
    [
      'assistant',
      '[{"type":"text","text":"Let me see."},{"type":"tool-call","id":"a","name":"weather","arguments":"{\\"city\\":\\"Rome\\"}"}]',
    ],
    [
      'tool',
      '[{"type":"tool-result","id":"a","content":[{"type":"text","text":"{\\"city\\":\\"Rome\\",\\"sky\\":\\"sunny\\"}"}]}]',
    ],
  ])
  expect(inputOf(engine.requests[0])).toMatchObject({
    tools: [{ name: 'weather', description: 'Weather of a city', parameters: { required: ['city'] } }],
    toolChoice: { mode: 'auto' },
  })
})

test('the conversation goes on with the messages of the result', async () => {
  const { engine, llm } = await openLlm([[{ reasoning: 'Hm.' }, callWeather('Rome', 'a')], 'Sunny.', 'Bye.'])
  const question = { role: 'user', content: 'How is Rome?' } as const

  const { messages } = await llm.chat([question], {
    tools: { weather: { parameters: city, execute: () => 'sunny' } },
  })
  await llm.chat([question, ...messages, { role: 'user', content: 'Bye!' }])

  expect(textsOf(engine.requests[2])).toEqual([
    ...(textsOf(engine.requests[1]) ?? []),
    ['assistant', '[{"type":"text","text":"Sunny."}]'],
    ['user', '[{"type":"text","text":"Bye!"}]'],
  ])
  expect(textsOf(engine.requests[1])?.[1]?.[1]).toContain('{"type":"reasoning","text":"Hm."}')
})

test('parallel calls run at the same time, and their results keep the order of the calls', async () => {
  const { llm } = await openLlm([[callWeather('Rome', 'a'), callWeather('Oslo', 'b')], 'Done.'])
  const running: string[] = []
  let release: () => void = () => {}
  const bothRun = new Promise<void>((resolve) => {
    release = resolve
  })

  const { messages } = await llm.chat('Hi', {
    tools: {
      weather: {
        parameters: city,
        execute: async ({ city }) => {
          running.push(city)
          if (running.length === 2) release()
          await bothRun
          return city
        },
      },
    },
  })

  expect(running).toEqual(['Rome', 'Oslo'])
  expect(messages.flatMap((message) => (message.role === 'tool' ? message.content : []))).toEqual([
    'Rome',
    'Oslo',
  ])
})

test('a tool gets validated arguments, and its call, the conversation and a signal', async () => {
  const { llm } = await openLlm([[callWeather('Rome', 'a')], 'Done.'])
  const given: unknown[] = []

  await llm.chat('Hi', {
    tools: {
      weather: {
        parameters: z.object({ city: z.string().toLowerCase() }),
        execute(args, { toolCallId, messages, signal }) {
          given.push(args, toolCallId, messages, signal.aborted, Object.keys(this))
          return null
        },
      },
    },
  })

  expect(given).toEqual([
    { city: 'rome' },
    'a',
    [
      { role: 'user', content: 'Hi' },
      {
        role: 'assistant',
        content: '',
        toolCalls: [{ id: 'a', name: 'weather', arguments: { city: 'Rome' } }],
      },
    ],
    false,
    ['parameters', 'execute'],
  ])
})

test.each([
  ['an error of the tool', [callWeather('Rome', 'a')], 'The service is down.'],
  [
    'invalid arguments',
    [{ call: 'weather', id: 'a', arguments: { city: 7 } }],
    /^Invalid arguments\. city: /,
  ],
  ['an unknown tool', [{ call: 'time', id: 'a' }], "There is no tool 'time'. The tools are: weather."],
])('%s is handed to the model', async (_what, answer, content) => {
  const { engine, llm } = await openLlm([answer, 'Sorry.'])
  const execute = (): string => {
    throw new Error('The service is down.')
  }

  const { text, messages } = await llm.chat('Hi', { tools: { weather: { parameters: city, execute } } })

  expect(text).toBe('Sorry.')
  expect(messages[1]).toEqual({
    role: 'tool',
    toolCallId: 'a',
    content: typeof content === 'string' ? content : expect.stringMatching(content),
    isError: true,
  })
  expect(textsOf(engine.requests[1])?.at(-1)?.[1]).toContain('"isError":true')
})

test.each([
  ['a string', 'sunny', 'sunny'],
  ['a number', 7, '7'],
  ['null', null, 'null'],
  ['a list', ['a', { b: 1 }], '["a",{"b":1}]'],
  ['a date', new Date(0), '"1970-01-01T00:00:00.000Z"'],
])('the model reads %s as text', async (_what, output, content) => {
  const { llm } = await openLlm([[callWeather('Rome', 'a')], 'Done.'])

  const { messages } = await llm.chat('Hi', {
    tools: { weather: { parameters: city, execute: () => output } },
  })

  expect(messages[1]).toEqual({ role: 'tool', toolCallId: 'a', content })
})

const circle: { self?: object } = {}
circle.self = circle

test('a result that JSON can represent is read as JSON', async () => {
  const { engine, llm } = await openLlm([[callWeather('Rome', 'a')], 'Done.'])
  const shared = { degrees: 21 }
  class City {
    readonly name = 'Rome'
  }
  const output = {
    at: new Date(0),
    empty: {},
    none: [],
    nothing: null,
    city: new City(),
    days: [shared, shared],
  }

  await llm.chat('Hi', { tools: { weather: { parameters: city, execute: () => output } } })

  expect(textsOf(engine.requests[1])?.at(-1)).toEqual([
    'tool',
    JSON.stringify([
      {
        type: 'tool-result',
        id: 'a',
        content: [
          {
            type: 'text',
            text: '{"at":"1970-01-01T00:00:00.000Z","empty":{},"none":[],"nothing":null,"city":{"name":"Rome"},"days":[{"degrees":21},{"degrees":21}]}',
          },
        ],
      },
    ]),
  ])
})

test.each([
  ['nothing', undefined, 'undefined'],
  ['a big integer', 1n, 'bigint'],
  ['a circle', circle, 'object'],
  ['a Map', { data: [{ m: new Map() }] }, 'Map in data[0].m'],
  ['a Set', new Set([1]), 'Set'],
  ['a promise in a field', { sky: Promise.resolve('sunny') }, 'Promise in sky'],
  ['a function in a field', { sky: () => 'sunny' }, 'function in sky'],
  ['an undefined field', { sky: undefined }, 'undefined in sky'],
  ['a big integer in a field', { city: { people: 1n } }, 'bigint in city.people'],
  ['no number', { degrees: Number.NaN }, 'NaN in degrees'],
])('%s as a result rejects the call, and stops the other tools', async (_what, output, name) => {
  const { llm } = await openLlm([[callWeather('Rome', 'a'), { call: 'slow' }], 'Done.'])
  let signal: AbortSignal | undefined

  const answer = llm.chat('Hi', {
    tools: {
      weather: { parameters: city, execute: () => output as never },
      slow: {
        execute: (_args, context) => {
          signal = context.signal
          return new Promise<string>(() => {})
        },
      },
    },
  })

  await expect(answer).rejects.toMatchObject({
    code: 'invalid_request',
    message: `tools.weather.execute: expected the result to be a string, or a value that JSON can represent, got ${name}.`,
    details: { param: 'tools.weather.execute' },
  })
  expect(signal?.aborted).toBe(true)
})

test('calls of tools without `execute` are returned, beside the results of the others', async () => {
  const { engine, llm } = await openLlm([
    [callWeather('Rome', 'a'), { call: 'ask', id: 'b', arguments: { text: 'Why?' } }],
  ])

  const result = await llm.chat('Hi', {
    tools: {
      weather: { parameters: city, execute: () => 'sunny' },
      ask: { parameters: z.object({ text: z.string() }) },
    },
  })

  expect(result.toolCalls).toEqual([{ id: 'b', name: 'ask', arguments: { text: 'Why?' } }])
  expect(result.finishReason).toBe('tool-calls')
  expect(result.messages.map(({ role }) => role)).toEqual(['assistant', 'tool'])
  expect(engine.requests).toHaveLength(1)

  await llm.chat([
    { role: 'user', content: 'Hi' },
    ...result.messages,
    { role: 'tool', toolCallId: 'b', content: 'Because.' },
  ])

  expect(textsOf(engine.requests[1])?.map(([role]) => role)).toEqual(['user', 'assistant', 'tool', 'tool'])
})

test('after maxSteps answers, open calls are returned without running them', async () => {
  const { engine, llm } = await openLlm([[callWeather('Rome', 'a')]])
  let runs = 0

  const { toolCalls, steps } = await llm.chat('Hi', {
    maxSteps: 3,
    tools: { weather: { parameters: city, execute: () => runs++ } },
  })

  expect([engine.requests.length, steps.length, runs]).toEqual([3, 3, 2])
  expect(toolCalls).toEqual([{ id: 'a', name: 'weather', arguments: { city: 'Rome' } }])
})

test('without maxSteps, ten answers are the limit', async () => {
  const { engine, llm } = await openLlm([[callWeather('Rome', 'a')]])

  await llm.chat('Hi', { tools: { weather: { parameters: city, execute: () => 'sunny' } } })

  expect(engine.requests).toHaveLength(10)
})

test.each([
  ['auto' as const, [{ mode: 'auto' }, { mode: 'auto' }]],
  ['none' as const, [{ mode: 'none' }, { mode: 'none' }]],
  ['required' as const, [{ mode: 'required' }, { mode: 'auto' }]],
  [{ tool: 'weather' } as const, [{ mode: 'required', names: ['weather'] }, { mode: 'auto' }]],
])(
  'the tool choice %j applies to the first step, and a later step is not forced',
  async (toolChoice, choices) => {
    const { engine, llm } = await openLlm([[callWeather('Rome', 'a')], 'Done.'])

    await llm.chat('Hi', { toolChoice, tools: { weather: { parameters: city, execute: () => 'sunny' } } })

    expect(engine.requests.map((request) => inputOf(request)?.toolChoice)).toEqual(choices)
  },
)

test('parallelToolCalls: false allows one call per answer', async () => {
  const { engine, llm } = await openLlm(['Done.'])

  await llm.chat('Hi', { parallelToolCalls: false, tools: { weather: { parameters: city } } })

  expect(inputOf(engine.requests[0])?.toolChoice).toEqual({ mode: 'auto', parallel: false })
})

test('with a schema, the last step has no calls, and a forced call comes without the schema', async () => {
  const { engine, llm } = await openLlm([
    [callWeather('Rome', 'a')],
    [callWeather('Oslo', 'b')],
    '{"sky":"sunny"}',
  ])

  const { object, steps } = await llm.chat('Hi', {
    schema: z.object({ sky: z.string() }),
    toolChoice: 'required',
    maxSteps: 3,
    tools: { weather: { parameters: city, execute: () => 'sunny' } },
  })

  expect(object).toEqual({ sky: 'sunny' })
  expect(steps).toHaveLength(3)
  expect(
    engine.requests.map(({ format, ...request }) => [
      format?.type,
      inputOf(request as never)?.toolChoice?.mode,
    ]),
  ).toEqual([
    [undefined, 'required'],
    ['json-schema', 'auto'],
    ['json-schema', 'none'],
  ])
})

test('with a schema, returned calls leave the object undefined', async () => {
  const { llm } = await openLlm([[callWeather('Rome', 'a')]])

  const { object, toolCalls } = await llm.chat('Hi', {
    schema: city,
    tools: { weather: { parameters: city } },
  })

  expect([object, toolCalls.length]).toEqual([undefined, 1])
})

test('onStep is called after each step, and the next one waits for it', async () => {
  const { engine, llm } = await openLlm([[callWeather('Rome', 'a')], 'Done.'])
  const seen: unknown[] = []
  const onStep = async ({ toolResults, text }: ChatStep): Promise<void> => {
    await new Promise((resolve) => setImmediate(resolve))
    seen.push([engine.requests.length, toolResults.length, text])
  }

  await llm.chat('Hi', { onStep, tools: { weather: { parameters: city, execute: () => 'sunny' } } })

  expect(seen).toEqual([
    [1, 1, ''],
    [2, 0, 'Done.'],
  ])
})

test('an error of onStep rejects the call', async () => {
  const { engine, llm } = await openLlm([[callWeather('Rome', 'a')], 'Done.'])
  const onStep = (): void => {
    throw new Error('No.')
  }

  const answer = llm.chat('Hi', { onStep, tools: { weather: { parameters: city, execute: () => 'sunny' } } })

  await expect(answer).rejects.toThrow('No.')
  expect(engine.requests).toHaveLength(1)
})

test('a stream has the text of all steps, and the result of the last one', async () => {
  const { llm } = await openLlm([['Wait.', callWeather('Rome', 'a')], 'Sunny today.'])

  const stream = llm.chat('Hi', {
    stream: true,
    tools: { weather: { parameters: city, execute: () => 'sunny' } },
  })
  const pieces: string[] = []
  for await (const piece of stream) pieces.push(piece)

  expect(pieces).toEqual(['Wait.', 'Sunny', ' today.'])
  expect((await stream.result).text).toBe('Sunny today.')
})

test('an abort reaches a running tool, and the call does not wait for a tool that ignores it', async () => {
  const controller = new AbortController()
  const { engine, llm } = await openLlm([[callWeather('Rome', 'a')], 'Done.'])
  let reason: unknown

  const answer = llm.chat('Hi', {
    signal: controller.signal,
    tools: {
      weather: {
        parameters: city,
        execute: (_args, { signal }) => {
          signal.addEventListener('abort', () => {
            reason = signal.reason
          })
          controller.abort()
          return new Promise<string>(() => {})
        },
      },
    },
  })

  await expect(answer).rejects.toMatchObject({ name: 'AbortError' })
  expect(reason).toMatchObject({ name: 'AbortError' })
  expect(engine.requests).toHaveLength(1)
})

test('an abort between two steps starts no further answer', async () => {
  const controller = new AbortController()
  const { engine, llm } = await openLlm([[callWeather('Rome', 'a')], 'Done.'])

  const answer = llm.chat('Hi', {
    signal: controller.signal,
    onStep: () => controller.abort(),
    tools: { weather: { parameters: city, execute: () => 'sunny' } },
  })

  await expect(answer).rejects.toMatchObject({ name: 'AbortError' })
  expect(engine.requests).toHaveLength(1)
})

test('an abort during the second answer ends it in the engine', async () => {
  const controller = new AbortController()
  const { engine, llm } = await openLlm([[callWeather('Rome', 'a')], ['one', 'two', 'three']])
  const stream = llm.chat('Hi', {
    stream: true,
    signal: controller.signal,
    tools: { weather: { parameters: city, execute: () => 'sunny' } },
  })

  for await (const _piece of stream) controller.abort()
  await new Promise((resolve) => setImmediate(resolve))

  expect([engine.requests.length, engine.running]).toEqual([2, 0])
  await expect(stream.result).rejects.toMatchObject({ name: 'AbortError' })
})

test("each step counts as a request of the caller's limits", async () => {
  const { engine, llm } = await openLlm([[callWeather('Rome', 'a')]])
  const caller = { id: 'ada', limits: { requestsPerMinute: 2 } }

  const answer = llm.chat('Hi', { caller, tools: { weather: { parameters: city, execute: () => 'sunny' } } })

  await expect(answer).rejects.toMatchObject({ code: 'rate_limit' })
  expect(engine.requests).toHaveLength(2)
})
