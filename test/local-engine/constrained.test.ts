/** Answers that are held to something: JSON, schemas, grammars, calls that have to be. */
import {
  createLlm,
  type GenerateEvent,
  type GenerateRequest,
  type Llm,
  LlmError,
  type Tool,
} from '@modelmount/core'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { anySchema, validator } from '../support/random-schemas.ts'
import { times } from '../support/scale.ts'

let llm: Llm

beforeAll(async () => {
  llm = await createLlm({ models: emptyFolder(), local: { contextSize: 2_048 } })
})

afterAll(() => llm.close())

interface Said {
  readonly text: string
  readonly calls: readonly { readonly name: string; readonly json: string }[]
  readonly end: Extract<GenerateEvent, { type: 'end' }>
}

async function say(
  request: Partial<GenerateRequest> & { readonly tools?: readonly Tool[]; readonly toolChoice?: object },
  question = 'Tell me something.',
): Promise<Said> {
  const { tools, toolChoice, ...rest } = request
  const messages = [{ role: 'user', content: [{ type: 'text', text: question }] }] as const
  const input = {
    kind: 'chat',
    messages,
    ...(tools && { tools }),
    ...(toolChoice && { toolChoice }),
  } as const
  const generation = await llm.generate(
    { model: 'tiny', input: input as GenerateRequest['input'], maxTokens: 512, ...rest },
    { signal: new AbortController().signal },
  )
  let text = ''
  const calls: { name: string; json: string }[] = []
  for await (const event of generation) {
    if (event.type === 'text') text += event.text
    if (event.type === 'tool-call') calls.push({ name: event.name, json: '' })
    const call = event.type === 'tool-arguments' ? calls[event.index] : undefined
    if (call && event.type === 'tool-arguments') call.json += event.json
    if (event.type === 'end') return { text, calls, end: event }
  }
  throw new Error('The answer has no end.')
}

const isRefused = (error: unknown): boolean => error instanceof LlmError && error.code === 'invalid_request'

test('JSON is an object, with any draw', async () => {
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, seed) =>
      say({ format: { type: 'json' }, sampling: { temperature: 1, seed } }),
    ),
  )

  for (const { text, end } of answers.filter(({ end }) => end.reason === 'stop')) {
    expect(JSON.parse(text)).toBeTypeOf('object')
    expect(end.usage.outputTokens).toBeLessThan(512)
  }
  expect(answers.filter(({ end }) => end.reason === 'stop').length).toBeGreaterThan(4)
}, 60_000)

test('random schemas: what is finished is valid, and most is finished', async () => {
  const schemas = fc.sample(anySchema, { numRuns: times(600, 80), seed: 7 })
  let [kept, finished, invalid] = [0, 0, 0]
  const unfinished: string[] = []
  const one = async (schema: object): Promise<void> => {
    if (kept >= times(300, 40)) return
    const answer = await say({ format: { type: 'json-schema', schema }, sampling: { temperature: 1 } }).catch(
      (error) => {
        if (!isRefused(error)) throw error
      },
    )
    if (!answer) return
    kept++
    if (answer.end.reason !== 'stop') {
      unfinished.push(`${JSON.stringify(schema)} ${answer.text.slice(-80)}`)
      return
    }
    finished++
    const isValid = validator(schema)(JSON.parse(answer.text))
    if (!isValid) invalid++
    expect([answer.text, isValid], JSON.stringify(schema)).toEqual([answer.text, true])
  }
  const waiting = [...schemas]
  const worker = async (): Promise<void> => {
    for (let next = waiting.pop(); next; next = waiting.pop()) await one(next)
  }
  await Promise.all([worker(), worker(), worker(), worker()])
  process.stdout.write(`${kept} random schemas, ${finished} finished within 512 tokens, ${invalid} invalid\n`)
  if (process.env.SHOW) process.stdout.write(`${unfinished.join('\n')}\n`)

  expect(kept).toBeGreaterThan(times(250, 30))
  expect(finished / kept).toBeGreaterThanOrEqual(0.9)
}, 1_200_000)

/** None that the model has seen. */
const unseen: readonly Tool[] = fc
  .sample(
    fc.record({
      verb: fc.constantFrom('fold', 'paint', 'book', 'sort', 'mend', 'brew', 'weigh'),
      noun: fc.constantFrom('paper', 'fence', 'cabin', 'letters', 'sock', 'tea', 'parcel'),
      kind: fc.constantFrom('string', 'integer', 'number', 'boolean'),
      choices: fc.uniqueArray(fc.constantFrom('red', 'blue', 'slow', 'fast', 'tiny'), { minLength: 1 }),
      deep: fc.boolean(),
    }),
    { numRuns: 100, seed: 11 },
  )
  .map(({ verb, noun, kind, choices, deep }, index) => {
    const properties = {
      how: { enum: choices },
      what: { type: kind },
      ...(deep && {
        parts: {
          type: 'array',
          items: { type: 'object', properties: { size: { type: 'integer' } } },
          maxItems: 2,
        },
      }),
    }
    return {
      name: `${verb}_${noun}_${index}`,
      description: `To ${verb} a ${noun}.`,
      parameters: { type: 'object', properties, required: ['how', 'what'], additionalProperties: false },
    }
  })

test.each([
  ['required', (tools: readonly Tool[]) => ({ tools, toolChoice: { mode: 'required', parallel: false } })],
  [
    'named',
    (tools: readonly Tool[]) => ({
      tools,
      toolChoice: { mode: 'required', names: [tools[1]?.name], parallel: false },
    }),
  ],
])(
  'unseen tools, %s: all arguments are valid',
  async (_mode, choose) => {
    const count = times(100, 15)
    const answers = await Promise.all(
      unseen.slice(0, count).map((_tool, index) => {
        const tools = [0, 1, 2].map((next) => unseen[(index + next) % unseen.length] as Tool)
        return say({ ...choose(tools), sampling: { temperature: 1 } }, 'Please help me with it.')
      }),
    )

    let valid = 0
    for (const { calls, end, text } of answers) {
      const [call] = calls
      expect([end.reason, text, calls.length]).toEqual(['tool-calls', '', 1])
      const tool = unseen.find(({ name }) => name === call?.name)
      if (validator(tool?.parameters ?? {})(JSON.parse(call?.json ?? ''))) valid++
    }
    process.stdout.write(`${valid} of ${count} forced calls with valid arguments\n`)
    expect(valid).toBe(count)
  },
  600_000,
)

test('a tool that the model calls by itself gets arguments that its schema allows', async () => {
  const weather: Tool = {
    name: 'get_weather',
    description: 'Get the current weather for a city',
    parameters: {
      type: 'object',
      properties: { town: { enum: ['Rome', 'Oslo'] }, days: { type: 'integer', minimum: 1, maximum: 3 } },
      required: ['town', 'days'],
      additionalProperties: false,
    },
  }

  const { calls, end } = await say(
    { tools: [weather], sampling: { temperature: 0 } },
    'What is the weather in Rome?',
  )

  expect(end.reason).toBe('tool-calls')
  expect(JSON.parse(calls[0]?.json ?? '')).toMatchObject({ town: 'Rome' })
  expect(validator(weather.parameters)(JSON.parse(calls[0]?.json ?? ''))).toBe(true)
})

test('a grammar of the user holds; the limit breaks it off as usual; a seed repeats it', async () => {
  const grammar = { type: 'grammar', source: 'root ::= ("ab" | "cd"){30,40}' } as const
  const whole = await say({ format: grammar, sampling: { seed: 3 } })
  const [again, half] = await Promise.all([
    say({ format: grammar, sampling: { seed: 3 } }),
    say({ format: grammar, sampling: { seed: 3 }, maxTokens: 5 }),
  ])

  expect(whole.text).toMatch(/^(?:ab|cd){30,40}$/)
  expect(whole.end.reason).toBe('stop')
  expect(again.text).toBe(whole.text)
  expect([half.end.reason, whole.text.startsWith(half.text)]).toEqual(['length', true])
})

test('a stop sequence ends it', async () => {
  const { text, end } = await say({
    format: { type: 'grammar', source: 'root ::= "one, " "two, " "three"' },
    stop: [', t'],
  })

  expect([text, end.reason, end.stopSequence]).toEqual(['one', 'stop', ', t'])
})

test('answers of all kinds side by side, one of them in the background, are each what they are held to', async () => {
  const schema = {
    type: 'object',
    properties: { n: { enum: [1, 2] } },
    required: ['n'],
    additionalProperties: false,
  }
  const [free, json, ...words] = await Promise.all([
    say({ sampling: { temperature: 0 } }, 'Hello'),
    say({ format: { type: 'json-schema', schema } }),
    ...['north', 'south', 'east', 'west'].map((word) =>
      say({ format: { type: 'grammar', source: `root ::= ("${word} "){20}` } }),
    ),
  ])

  expect(free?.text).toBe('Hello! How can I help you?')
  expect(validator(schema)(JSON.parse(json?.text ?? ''))).toBe(true)
  expect(words.map(({ text }) => text)).toEqual(
    ['north ', 'south ', 'east ', 'west '].map((word) => word.repeat(20)),
  )
})

const properties = Object.fromEntries(
  Array.from({ length: 10_000 }, (_, index) => [`p${index}`, { type: 'string' }]),
)
test.each([
  ['an empty choice', { type: 'json-schema', schema: { enum: [] } }],
  ['a contradiction', { type: 'json-schema', schema: { type: 'integer', minimum: 2, maximum: 1 } }],
  ['a loop', { type: 'json-schema', schema: { $ref: '#' } }],
  ['a huge schema', { type: 'json-schema', schema: { type: 'object', properties } }],
  [
    'a pattern that explodes',
    { type: 'json-schema', schema: { type: 'string', pattern: '^(a|b)*a(a|b){200}$' } },
  ],
  ['a keyword that cannot be kept', { type: 'json-schema', schema: { type: 'array', contains: {} } }],
  ['left recursion', { type: 'grammar', source: 'root ::= root "a"' }],
  [
    'a grammar nested without end',
    { type: 'grammar', source: `root ::= ${'('.repeat(9_000)}"a"${')'.repeat(9_000)}` },
  ],
  ['a grammar of optional runs', { type: 'grammar', source: `root ::= ${'"a"? '.repeat(60)}` }],
  ['a grammar without a way out', { type: 'grammar', source: 'root ::= "a" root' }],
] as const)(
  '%s is refused or kept, and nobody else waits',
  async (_name, format) => {
    const others = Array.from({ length: 3 }, () =>
      say({ sampling: { temperature: 0 } }, 'Tell me a short story.'),
    )

    const answer = await say({ format, maxTokens: 32 } as Partial<GenerateRequest>).catch(
      (error: unknown) => error,
    )

    expect(isRefused(answer) || (answer as Said).end !== undefined, String(answer)).toBe(true)
    for (const { end } of await Promise.all(others)) expect(end.reason).toBe('stop')
  },
  60_000,
)
