/** Types of in-process calls, which `npm run types` checks. Nothing runs: the calls are in functions that no test calls. */
import {
  type CallerLlm,
  type ChatOptions,
  type ChatResult,
  jsonSchema,
  type Llm,
  tool,
} from '@modelmount/core'
import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expectTypeOf, test } from 'vitest'
import { z } from 'zod'

declare const llm: Llm
declare const caller: CallerLlm

const zodCity = z.object({
  name: z.string(),
  people: z.number().optional(),
  since: z.string().transform((text) => new Date(text)),
})
const valibotCity = v.object({ name: v.string(), people: v.optional(v.number()) })
const arktypeCity = type({ name: 'string', 'people?': 'number' })
interface City {
  readonly name: string
}
const citySchema = jsonSchema<City>({ type: 'object', properties: { name: { type: 'string' } } })
const text = z.object({ text: z.string() })

describe('the object of a schema has exactly its output type', () => {
  test('zod, with transforms', () => {
    const ask = async () => (await llm.chat('Rome?', { schema: zodCity })).object

    expectTypeOf(ask).returns.resolves.toEqualTypeOf<{
      name: string
      people?: number | undefined
      since: Date
    }>()
  })

  test('valibot', () => {
    const ask = async () => (await llm.chat('Rome?', { schema: valibotCity })).object

    expectTypeOf(ask).returns.resolves.toEqualTypeOf<{ name: string; people?: number | undefined }>()
  })

  test('arktype', () => {
    const ask = async () => (await llm.chat('Rome?', { schema: arktypeCity })).object

    expectTypeOf(ask).returns.resolves.toEqualTypeOf<{ name: string; people?: number }>()
  })

  test('a JSON Schema, with a type and without one', () => {
    const typed = async () => (await llm.chat('Rome?', { schema: citySchema })).object
    const untyped = async () =>
      (await llm.chat('Rome?', { schema: { type: 'array', items: { type: 'string' } } })).object

    expectTypeOf(typed).returns.resolves.toEqualTypeOf<City>()
    expectTypeOf(untyped).returns.resolves.toEqualTypeOf<unknown>()
  })

  test('with tools, the object may be missing, since the answer may end with calls', () => {
    const ask = async () =>
      (await llm.chat('Rome?', { schema: citySchema, tools: { find: { description: 'Finds a city.' } } }))
        .object

    expectTypeOf(ask).returns.resolves.toEqualTypeOf<City | undefined>()
  })

  test('a caller of llm.as()', () => {
    const ask = async () => (await caller.chat('Rome?', { schema: zodCity })).object.since

    expectTypeOf(ask).returns.resolves.toEqualTypeOf<Date>()
  })
})

test('without a schema, the result has no object', () => {
  const ask = () => llm.chat('Hi')

  expectTypeOf(ask).returns.resolves.toEqualTypeOf<ChatResult>()
  expectTypeOf(ask).returns.resolves.not.toHaveProperty('object')
})

describe('a stream', () => {
  test('without a schema yields texts', () => {
    const ask = async () => {
      const stream = llm.chat('Hi', { stream: true })
      for await (const piece of stream) return piece
      throw await stream.result
    }

    expectTypeOf(ask).returns.resolves.toEqualTypeOf<string>()
  })

  test('with a schema yields texts with partial objects, and has a typed result', () => {
    const ask = () => llm.chat('Hi', { stream: true, schema: zodCity })
    const first = async () => {
      for await (const { text, object } of ask()) return { text, object }
      throw new Error('empty')
    }

    expectTypeOf(first).returns.resolves.toEqualTypeOf<{
      text: string
      object:
        | { readonly name?: string; readonly people?: number | undefined; readonly since?: string }
        | undefined
    }>()
    expectTypeOf(async () => (await ask().result).object.since).returns.resolves.toEqualTypeOf<Date>()
  })

  test('with a flag that is not known in advance is a stream or a promise', () => {
    const ask = (stream: boolean) => llm.chat('Hi', { stream })

    expectTypeOf(ask).returns.extract<Promise<unknown>>().resolves.toEqualTypeOf<ChatResult>()
  })
})

describe('the arguments of a tool have the type of its parameters', () => {
  test('of each schema library, and of a JSON Schema', () => {
    const ask = () =>
      llm.chat('Hi', {
        tools: {
          zod: {
            parameters: zodCity,
            execute: (args) => {
              expectTypeOf(args).toEqualTypeOf<z.output<typeof zodCity>>()
              return args.name
            },
          },
          valibot: {
            parameters: valibotCity,
            execute(args, { signal, toolCallId, messages }) {
              expectTypeOf(args).toEqualTypeOf<v.InferOutput<typeof valibotCity>>()
              expectTypeOf(signal).toEqualTypeOf<AbortSignal>()
              return { id: toolCallId, count: messages.length }
            },
          },
          arktype: {
            parameters: arktypeCity,
            execute: async ({ name, people }) => {
              expectTypeOf(name).toEqualTypeOf<string>()
              expectTypeOf(people).toEqualTypeOf<number | undefined>()
              return null
            },
          },
          json: {
            parameters: { type: 'object', properties: { name: { type: 'string' } } },
            execute: (args) => {
              expectTypeOf(args).toEqualTypeOf<Readonly<Record<string, unknown>>>()
              return 1
            },
          },
          none: { execute: () => 'now' },
          returned: { description: 'Is returned.', parameters: zodCity },
        },
        toolChoice: { tool: 'none' },
      })

    expectTypeOf(ask).returns.resolves.toEqualTypeOf<ChatResult>()
  })
})

test('wrong options do not compile', () => {
  const wrong = () => [
    // @ts-expect-error unknown option
    llm.chat('Hi', { max_tokens: 5 }),
    // @ts-expect-error unknown option
    llm.chat('Hi', { format: 'json' }),
    // @ts-expect-error unknown role
    llm.chat([{ role: 'bot', content: 'Hi' }]),
    // @ts-expect-error a tool message without its call
    llm.chat([{ role: 'tool', content: 'Hi' }]),
    // @ts-expect-error content that is no text
    llm.chat([{ role: 'tool', toolCallId: 'a', content: 42 }]),
    // @ts-expect-error no option `caller` for a caller
    caller.chat('Hi', { caller: { id: 'ada' } }),
    // @ts-expect-error unknown field
    llm.generate({ messages: [] }),
    // @ts-expect-error unknown option
    llm.embed('Hi', { dimension: 3 }),
  ]

  expectTypeOf(wrong).toBeFunction()
})

test('wrong schemas do not compile', () => {
  const wrong = () => [
    // @ts-expect-error no schema
    llm.chat('Hi', { schema: 'json' }),
    // @ts-expect-error the fields of a schema
    llm.chat('Hi', { schema: { name: z.string() } }),
    // @ts-expect-error a class of zod
    llm.chat('Hi', { schema: z.object }),
    // @ts-expect-error a field that the schema does not have
    llm.chat('Hi', { schema: text }).then(({ object }) => object.name),
    // @ts-expect-error an object without a schema
    llm.chat('Hi').then(({ object }) => object),
  ]

  expectTypeOf(wrong).toBeFunction()
})

test('tool() gives the arguments of a tool in a variable their types', () => {
  const weather = tool({
    parameters: z.object({ city: z.string() }),
    execute: ({ city }) => {
      expectTypeOf(city).toEqualTypeOf<string>()
      return { city }
    },
  })
  const now = tool({ execute: () => 'noon' })
  const ask = async () => await llm.chat('Rome?', { tools: { weather, now }, toolChoice: { tool: 'now' } })

  expectTypeOf(ask).returns.resolves.toEqualTypeOf<ChatResult>()
})

test('wrong tools do not compile', () => {
  const wrong = () => [
    // @ts-expect-error unknown tool
    llm.chat('Hi', { tools: { now: { execute: () => 'now' } }, toolChoice: { tool: 'later' } }),
    // @ts-expect-error arguments that the schema does not have
    llm.chat('Hi', { tools: { echo: { parameters: text, execute: ({ name }) => name } } }),
    // @ts-expect-error a result that JSON cannot represent
    llm.chat('Hi', { tools: { echo: { parameters: text, execute: () => 1n } } }),
    // @ts-expect-error no result
    llm.chat('Hi', { tools: { echo: { parameters: text, execute: () => {} } } }),
    // @ts-expect-error parameters that are no schema
    llm.chat('Hi', { tools: { echo: { parameters: 'text' } } }),
    // @ts-expect-error unknown field
    llm.chat('Hi', { tools: { echo: { inputSchema: text } } }),
  ]

  expectTypeOf(wrong).toBeFunction()
})

test('a function of the app can pass options on', () => {
  const ask = (options: ChatOptions) => llm.chat('Hi', options)
  const askWithout = (options: Omit<ChatOptions, 'stream'>) => llm.chat('Hi', options)

  expectTypeOf(ask).parameter(0).toEqualTypeOf<ChatOptions>()
  expectTypeOf(askWithout).returns.resolves.toHaveProperty('text')
})

test('embed() returns one vector for a text, and a list for several', () => {
  const one = async () => (await llm.embed('Hi', { dimensions: 3 })).embedding
  const several = async () => (await llm.embed(['Hi', [1, 2]])).embeddings

  expectTypeOf(one).returns.resolves.toEqualTypeOf<readonly number[]>()
  expectTypeOf(several).returns.resolves.toEqualTypeOf<readonly (readonly number[])[]>()
})
