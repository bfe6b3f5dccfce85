/** Streams and whole answers have the same text, reasoning, tool calls and finish reason, in every API. */
import { createLlm, type Llm, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { readEvents } from '@modelmount/core/testing'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { internals } from '../../packages/core/src/llm.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { type Listening, listen } from '../support/listen.ts'
import { anySchema, bounded } from '../support/random-schemas.ts'
import { times } from '../support/scale.ts'

let llm: Llm
let server: Listening

beforeAll(async () => {
  llm = await createLlm({ models: emptyFolder(), local: { contextSize: 2_048 } })
  const { clientOf, ...others } = llm[internals]
  const seeded: Llm = {
    ...llm,
    [internals]: {
      ...others,
      clientOf: (...caller) => {
        const client = clientOf(...caller)
        const generate = client.generate.bind(client)
        // Anthropic's API has no seed. In the others, each question has one.
        client.generate = (request, options) => {
          const seed = JSON.stringify(request.input).length
          return generate({ ...request, sampling: { seed, ...request.sampling } }, options)
        }
        return client
      },
    },
  }
  server = await listen(toNodeHandler(routesFor(), seeded))
  await llm.load('tiny')
})

afterAll(async () => {
  await server.close()
  await llm.close()
})

/** An answer, independent of its API. */
interface Output {
  text: string
  thoughts: string
  /** Name and JSON arguments of each tool call. */
  calls: [name: string, json: string][]
  finish: string
}

interface Question {
  readonly prompt: string
  readonly system: string
  readonly limit: number
  readonly topP: number
  readonly seed: number
  readonly stop: readonly string[]
  readonly kind: (typeof kinds)[number]
  /** Number of choices, in the APIs that have several. */
  readonly n: number
  readonly schema: object
}

interface Api {
  readonly path: string
  /** `undefined` if this API does not support the kind of question. */
  body(question: Question): object | undefined
  /** One output per choice. */
  whole(answer: never): readonly Output[]
  streamed(body: string): Promise<readonly Output[]>
}

const nothing = (): Output => ({ text: '', thoughts: '', calls: [], finish: '' })

const weather = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const dice = { type: 'object', properties: { sides: { enum: [6, 20] }, count: { type: 'integer' } } }
const tools = [
  { name: 'get_weather', description: 'Get the current weather for a city', parameters: weather },
  { name: 'roll_dice', description: 'Rolls dice.', parameters: dice },
]
const hasTools = ({ kind }: Question): boolean => /tools|forced/.test(kind)
const thinks = ({ kind }: Question): boolean => kind.startsWith('thinking')
const messagesOf = ({ system, prompt }: Question) => [
  ...(system === '' ? [] : [{ role: 'system', content: system }]),
  { role: 'user', content: prompt },
]
const functions = tools.map((tool) => ({ type: 'function', function: tool }))

interface OpenAICall {
  readonly index: number
  readonly function: { readonly name?: string; readonly arguments: string }
}
interface OpenAIMessage {
  readonly content?: string | null
  readonly reasoning_content?: string
  readonly tool_calls?: readonly OpenAICall[]
}

const openai: Api = {
  path: '/v1/chat/completions',
  body: (question) => ({
    ...{ model: 'tiny', messages: messagesOf(question), max_tokens: question.limit, temperature: 1 },
    ...{ top_p: question.topP, seed: question.seed, stop: question.stop, n: question.n },
    reasoning_effort: thinks(question) ? 'medium' : 'none',
    ...(hasTools(question) && { tools: functions }),
    ...(question.kind === 'forced' && { tool_choice: 'required' }),
    ...(question.kind === 'format' && {
      response_format: { type: 'json_schema', json_schema: { name: 'it', schema: question.schema } },
    }),
  }),
  whole: ({ choices }: { choices: { message: OpenAIMessage; finish_reason: string }[] }) =>
    choices.map(({ message, finish_reason }) => ({
      text: message.content ?? '',
      thoughts: message.reasoning_content ?? '',
      calls: (message.tool_calls ?? []).map((call) => [call.function.name ?? '', call.function.arguments]),
      finish: finish_reason,
    })),
  streamed: async (body) => {
    const outputs: Output[] = []
    for await (const { data } of readEvents(body)) {
      if (data === '[DONE]') continue
      const { choices } = JSON.parse(data) as {
        choices: { index: number; delta: OpenAIMessage; finish_reason: string | null }[]
      }
      for (const { index: choice, delta, finish_reason } of choices) {
        outputs[choice] ??= nothing()
        const output = outputs[choice]
        output.text += delta.content ?? ''
        output.thoughts += delta.reasoning_content ?? ''
        output.finish += finish_reason ?? ''
        for (const { index, function: piece } of delta.tool_calls ?? []) {
          output.calls[index] ??= [piece.name ?? '', '']
          output.calls[index][1] += piece.arguments
        }
      }
    }
    return outputs
  },
}

interface TextChoice {
  readonly index: number
  readonly text: string
  readonly finish_reason: string | null
}

const completions: Api = {
  path: '/v1/completions',
  body: ({ kind, prompt, limit, topP, seed, stop, n }) =>
    kind === 'plain'
      ? {
          ...{ model: 'tiny', prompt, max_tokens: limit, temperature: 1, top_p: topP, seed, stop, n },
          ...(limit % 2 === 0 && { echo: true, logprobs: 1 }),
          ...(limit % 3 === 0 && { prompt: [prompt, [7, ' and ', 11]] }),
        }
      : undefined,
  whole: ({ choices }: { choices: TextChoice[] }) =>
    choices.map(({ text, finish_reason }) => ({ ...nothing(), text, finish: finish_reason ?? '' })),
  streamed: async (body) => {
    const outputs: Output[] = []
    for await (const { data } of readEvents(body)) {
      if (data === '[DONE]') continue
      for (const { index, text, finish_reason } of (JSON.parse(data) as { choices: TextChoice[] }).choices) {
        outputs[index] ??= nothing()
        outputs[index].text += text
        outputs[index].finish += finish_reason ?? ''
      }
    }
    return outputs
  },
}

interface ResponsesItem {
  readonly type: string
  readonly name?: string
  readonly arguments?: string
  readonly content?: readonly { readonly text: string }[]
}
interface ResponsesAnswer {
  readonly output: readonly ResponsesItem[]
  readonly status: string
  readonly incomplete_details: { readonly reason: string } | null
}

const responses: Api = {
  path: '/v1/responses',
  // This API has neither `stop` nor `seed`.
  body: (question) => ({
    ...{ model: 'tiny', input: messagesOf(question), max_output_tokens: question.limit, store: false },
    ...{ temperature: 1, top_p: question.topP, reasoning: { effort: thinks(question) ? 'medium' : 'none' } },
    ...(hasTools(question) && { tools: tools.map((tool) => ({ type: 'function', ...tool })) }),
    ...(question.kind === 'forced' && { tool_choice: 'required' }),
    ...(question.kind === 'format' && {
      text: { format: { type: 'json_schema', name: 'it', schema: question.schema } },
    }),
  }),
  whole: ({ output, ...answer }: ResponsesAnswer) => {
    const textOf = (type: string): string =>
      output
        .flatMap((item) => (item.type === type ? (item.content ?? []) : []))
        .reduce((sum, { text }) => sum + text, '')
    const calls = output.flatMap((item): [string, string][] =>
      item.type === 'function_call' ? [[item.name ?? '', item.arguments ?? '']] : [],
    )
    return [{ text: textOf('message'), thoughts: textOf('reasoning'), calls, finish: finishOf(answer) }]
  },
  streamed: async (body) => {
    const output = nothing()
    for await (const { event, data } of readEvents(body)) {
      const frame = JSON.parse(data) as { delta: string; item: ResponsesItem; response: ResponsesAnswer }
      if (event === 'response.output_text.delta') output.text += frame.delta
      if (event === 'response.reasoning_text.delta') output.thoughts += frame.delta
      if (event === 'response.output_item.added' && frame.item.type === 'function_call')
        output.calls.push([frame.item.name ?? '', ''])
      const call = output.calls.at(-1)
      if (event === 'response.function_call_arguments.delta' && call) call[1] += frame.delta
      if (event === 'response.completed' || event === 'response.incomplete')
        output.finish = finishOf(frame.response)
    }
    return [output]
  },
}
const finishOf = ({ status, incomplete_details }: Omit<ResponsesAnswer, 'output'>): string =>
  incomplete_details?.reason ?? status

interface OllamaAnswer {
  readonly message: {
    readonly content: string
    readonly thinking?: string
    readonly tool_calls?: readonly {
      readonly function: { readonly name: string; readonly arguments: object }
    }[]
  }
  readonly done_reason?: string
}

const addLine = (output: Output, { message, done_reason }: OllamaAnswer): Output => ({
  text: output.text + message.content,
  thoughts: output.thoughts + (message.thinking ?? ''),
  calls: [
    ...output.calls,
    ...(message.tool_calls ?? []).map(({ function: { name, arguments: values } }): [string, string] => [
      name,
      JSON.stringify(values),
    ]),
  ],
  finish: output.finish + (done_reason ?? ''),
})

const ollama: Api = {
  path: '/api/chat',
  body: (question) =>
    question.kind === 'forced'
      ? undefined
      : {
          ...{ model: 'tiny', messages: messagesOf(question), think: thinks(question) },
          options: {
            ...{ num_predict: question.limit, temperature: 1, top_k: 0, top_p: question.topP },
            ...{ seed: question.seed, stop: question.stop },
          },
          ...(hasTools(question) && { tools: functions }),
          ...(question.kind === 'format' && { format: question.schema }),
        },
  whole: (answer: OllamaAnswer) => [addLine(nothing(), answer)],
  streamed: async (body) => [
    body
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as OllamaAnswer)
      .reduce(addLine, nothing()),
  ],
}

/** A content block, or a delta of one. */
interface Block {
  readonly type: string
  readonly text?: string
  readonly thinking?: string
  readonly name?: string
  readonly input?: object
  readonly partial_json?: string
}
const addBlock = (output: Output, { text = '', thinking = '' }: Block): void => {
  output.text += text
  output.thoughts += thinking
}
/** Thinking budget, in tokens. It has to be below `max_tokens`. */
const budget = 1

const anthropic: Api = {
  path: '/v1/messages',
  body: (question) => ({
    ...{ model: 'tiny', messages: [{ role: 'user', content: question.prompt }], temperature: 1 },
    ...(question.system !== '' && { system: question.system }),
    ...{ max_tokens: question.limit + (thinks(question) ? budget : 0), top_p: question.topP },
    stop_sequences: question.stop.filter((text) => text.trim() !== ''),
    ...(thinks(question) && { thinking: { type: 'enabled', budget_tokens: budget } }),
    ...(hasTools(question) && {
      tools: tools.map(({ parameters, ...tool }) => ({ ...tool, input_schema: parameters })),
    }),
    ...(question.kind === 'forced' && { tool_choice: { type: 'any' } }),
    ...(question.kind === 'format' && {
      output_config: { format: { type: 'json_schema', schema: question.schema } },
    }),
  }),
  whole: ({ content, stop_reason }: { content: readonly Block[]; stop_reason: string }) => {
    const output = { ...nothing(), finish: stop_reason }
    for (const block of content) {
      addBlock(output, block)
      if (block.type === 'tool_use') output.calls.push([block.name ?? '', JSON.stringify(block.input)])
    }
    return [output]
  },
  streamed: async (body) => {
    const output = nothing()
    for await (const { event, data } of readEvents(body)) {
      const frame = JSON.parse(data) as { content_block: Block; delta: Block & { stop_reason?: string } }
      if (event === 'content_block_start' && frame.content_block.type === 'tool_use')
        output.calls.push([frame.content_block.name ?? '', ''])
      if (event === 'content_block_delta') addBlock(output, frame.delta)
      const call = output.calls.at(-1)
      if (call) call[1] += frame.delta?.partial_json ?? ''
      if (event === 'message_delta') output.finish = frame.delta.stop_reason ?? ''
    }
    return [output]
  },
}

const apis = [openai, completions, responses, ollama, anthropic]
const kinds = ['plain', 'tools', 'forced', 'thinking', 'thinking tools', 'format'] as const

const word = fc.constantFrom('Mia', 'Ben', 'Paris', 'a river', 'GGUF', 'é🍂', '7', '<|im_end|>', '')
const prompts = fc.oneof(
  word.map((about) => `Write a short story about ${about}.`),
  word.map((city) => `What is the weather in ${city}?`),
  fc.tuple(fc.nat(99), fc.nat(99)).map(([a, b]) => `What is ${a} plus ${b}?`),
  fc.constantFrom('Hello', 'Count from 1 to 9', 'Who are you?', 'Say the word apple.'),
  fc.string({ minLength: 1, maxLength: 60 }),
)
const questions = fc.record<Omit<Question, 'kind'>>({
  prompt: prompts,
  system: fc.constantFrom('', '', 'Be brief.'),
  limit: fc.integer({ min: 1, max: 160 }),
  topP: fc.constantFrom(1, 1, 0.9),
  seed: fc.nat(100_000),
  stop: fc.oneof(
    { weight: 3, arbitrary: fc.constant([]) },
    {
      weight: 1,
      arbitrary: fc.array(fc.constantFrom('.', 'e', ' the ', '\n', '"', '}', 'Mia'), { maxLength: 2 }),
    },
  ),
  schema: anySchema.map(bounded),
  n: fc.constantFrom(1, 1, 2, 3),
})

const post = (path: string, body: object): Promise<Response> =>
  fetch(`${server.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Removes incomplete tool calls. Whole answers omit them, but streams have already sent them. */
function withoutBroken(
  output: Output,
  isOpenAI: boolean,
): { readonly output: Output; readonly isBroken: boolean } {
  const calls = output.calls.filter(([, json]) => isJson(json || '{}'))
  const isBroken = calls.length < output.calls.length
  if (isBroken && isOpenAI) expect(output.finish).toBe('length')
  return { isBroken, output: { ...output, calls } }
}

const count = times(200, 16)

test.each(apis)(
  `$path gives ${count} random requests the same answer whole and streamed`,
  async (api) => {
    const asked = fc.sample(questions, { numRuns: 6 * count, seed: 5 }).flatMap((question, index) => {
      const kind = kinds[index % kinds.length] ?? 'plain'
      return api.body({ ...question, kind }) ?? []
    })
    const seen = { answered: 0, refused: 0, calls: 0, broken: 0, thoughts: 0, cut: 0, several: 0 }

    const compare = async (body: object): Promise<void> => {
      const whole = await post(api.path, { ...body, stream: false })
      const stream = await post(api.path, { ...body, stream: true })
      expect(stream.status, JSON.stringify(body)).toBe(whole.status)
      if (whole.status !== 200) {
        // An unsupported schema. Both answers have to contain the same error.
        expect([whole.status, JSON.parse(await whole.text()).error]).toEqual([
          400,
          JSON.parse(await stream.text()).error,
        ])
        seen.refused++
        return
      }
      const expected = api.whole((await whole.json()) as never)
      const streamed = await api.streamed(await stream.text())
      expect(streamed.length, JSON.stringify(body)).toBe(expected.length)
      for (const [index, choice] of streamed.entries()) {
        const { output, isBroken } = withoutBroken(choice, api === openai)
        // Whole answers of `/v1/responses` contain them, too, with the status `incomplete`.
        const { finish, ...others } = withoutBroken(expected[index] as Output, false).output
        const whole = { ...others, finish: isBroken && api === openai ? output.finish : finish }
        expect(normal(output), `${api.path} ${JSON.stringify(body)} choice ${index}`).toEqual(normal(whole))
        if (output.calls.length > 0) seen.calls++
        if (output.thoughts !== '') seen.thoughts++
        if (isBroken) seen.broken++
        if (/length|max_/.test(output.finish)) seen.cut++
      }
      seen.answered++
      if (streamed.length > 1) seen.several++
    }
    const worker = async (): Promise<void> => {
      while (seen.answered < count) {
        const next = asked.shift()
        if (!next) return
        await compare(next)
      }
    }
    await Promise.all([worker(), worker(), worker()])
    process.stdout.write(
      `${seen.answered} random requests of ${api.path} got the same answer streamed and whole: ${seen.several} with several choices, ${seen.calls} with tool calls, ${seen.broken} with an incomplete one, ${seen.thoughts} with reasoning, ${seen.cut} cut by the limit; ${seen.refused} rejected with the same error\n`,
    )

    expect(seen.answered).toBeGreaterThanOrEqual(count)
    expect(seen.cut).toBeGreaterThan(0)
    if (api === openai || api === completions) expect(seen.several).toBeGreaterThan(0)
    if (api === completions) return
    expect(seen.calls).toBeGreaterThan(0)
    expect(seen.thoughts).toBeGreaterThan(0)
  },
  600_000,
)

/** Normalises the JSON of tool arguments, because whole answers of some APIs contain it as an object. */
const normal = (output: Output): Output => ({
  ...output,
  calls: output.calls.map(([name, json]) => [name, JSON.stringify(JSON.parse(json || '{}'))]),
})
