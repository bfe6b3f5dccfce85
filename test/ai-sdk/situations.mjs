/**
 * What apps do with the AI SDK and `@modelmount/ai-sdk`. It is plain JavaScript, because it runs with both supported
 * versions of the SDK: with version 6 in the tests, and with version 7 in a separate folder.
 */
import { createModelmount } from '@modelmount/ai-sdk'
import { createLlm, LlmError } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import * as sdk from 'ai'
import { z } from 'zod'

const { embed, embedMany, generateObject, generateText, Output, rerank, streamObject, streamText, tool } = sdk
const { stepCountIs = sdk.isStepCount } = sdk

const City = z.object({ city: z.string().max(20), isWarm: z.boolean() })
const getWeather = (execute) =>
  tool({
    description: 'Get the current weather for a city',
    inputSchema: z.object({ city: z.string().max(20).describe('The city') }),
    ...(execute && { execute }),
  })
const sunny = async ({ city }) => ({ city, temperature: 21 })
const callOf = (city, id) => ({ call: 'get_weather', arguments: { city }, ...(id && { id }) })

/** Answers of a script, each once, in order. */
const inTurn = (...answers) => {
  let count = 0
  return () => answers[count++] ?? 'There are no more answers.'
}

async function collect(iterable) {
  const items = []
  for await (const item of iterable) items.push(item)
  return items
}

/** Runs `use` with the models of a scripted engine, which are closed afterwards. */
async function scripted(script, use, { delayMs = 0, caller, options = {} } = {}) {
  const engine = scriptedEngine(script, { delayMs })
  const llm = await createLlm({ engine, models: [], ...options })
  try {
    return await use(createModelmount(llm, { ...(caller && { caller }) }), engine)
  } finally {
    await llm.close()
  }
}

/** Returns what an error tells the app. */
async function errorOf(promise) {
  const error = await promise.then(
    () => 'no error',
    (error) => error,
  )
  const { name, message, statusCode, isRetryable, responseHeaders, data } = error.lastError ?? error
  return { name, message, statusCode, isRetryable, responseHeaders, data }
}

const shortUsage = ({ inputTokens, outputTokens, inputTokenDetails, outputTokenDetails }) => ({
  ...{ inputTokens, outputTokens },
  cacheRead: inputTokenDetails.cacheReadTokens,
  cacheWrite: inputTokenDetails.cacheWriteTokens,
  reasoning: outputTokenDetails.reasoningTokens,
})

/** Situations with a scripted engine. */
export const scriptedSituations = {
  'generateText returns the text, the usage and the finish reason': () =>
    scripted('Hello there.', async (modelmount) => {
      const { text, usage, finishReason, warnings, response } = await generateText({
        model: modelmount('tiny'),
        system: 'Be brief.',
        prompt: 'Hi',
      })
      const { modelId, timestamp, id } = response
      const hasMetadata = timestamp instanceof Date && typeof id === 'string'
      return { text, usage: shortUsage(usage), finishReason, warnings, modelId, hasMetadata }
    }),

  'the settings of the SDK and the options of the provider reach the engine': () =>
    scripted('Hello.', async (modelmount, engine) => {
      await generateText({
        model: modelmount('tiny'),
        prompt: 'Hi',
        ...{ maxOutputTokens: 20, temperature: 0.5, topP: 0.9, topK: 5, seed: 7 },
        ...{ presencePenalty: 0.1, frequencyPenalty: 0.2, stopSequences: ['END'] },
        providerOptions: {
          modelmount: { reasoning: false, minP: 0.1, repeatPenalty: 1.1, templateOptions: { verbose: true } },
        },
      })
      return engine.requests
    }),

  'streamText streams words in order': () =>
    scripted('Hello there.', async (modelmount) => {
      const { fullStream } = streamText({ model: modelmount('tiny'), prompt: 'Hi' })
      return (await collect(fullStream)).map(({ type, text }) =>
        text === undefined ? type : `${type}: ${text}`,
      )
    }),

  'reasoning is separate from the text': () =>
    scripted([{ reasoning: 'Hm, ' }, { reasoning: 'easy.' }, 'Four.'], async (modelmount) => {
      const model = modelmount('tiny')
      const { text, reasoningText, usage } = await generateText({ model, prompt: '2 + 2?' })
      const { fullStream } = streamText({ model, prompt: '2 + 2?' })
      const types = (await collect(fullStream)).map(({ type }) => type)
      return { text, reasoningText, usage: shortUsage(usage), types }
    }),

  'the effort of reasoning reaches the engine': () =>
    scripted('Hello.', async (modelmount, engine) => {
      for (const reasoning of ['provider-default', 'none', 'high'])
        await generateText({ model: modelmount('tiny'), prompt: 'Hi', reasoning })
      return engine.requests.map(({ reasoning, input }) => [reasoning, input.templateOptions ?? {}])
    }),

  'a tool loop calls tools in parallel, and the model gets their results': () => {
    const calls = [{ reasoning: 'I need two.' }, callOf('Paris', 'call_a'), callOf('Rome', 'call_b')]
    return scripted(inTurn(calls, 'Both are warm.'), async (modelmount, engine) => {
      const { text, steps, finishReason } = await generateText({
        model: modelmount('tiny'),
        prompt: 'Is it warm in Paris and Rome?',
        tools: { get_weather: getWeather(sunny) },
        stopWhen: stepCountIs(3),
      })
      const reasons = steps.map((step) => step.finishReason)
      return { text, finishReason, reasons, second: engine.requests[1].input.messages }
    })
  },

  'a streamed tool call arrives in pieces': () => {
    const pieces = { call: 'get_weather', id: 'call_a', arguments: ['{"city":', '"Paris"}'] }
    return scripted(inTurn(['Let me see.', pieces], 'Warm.'), async (modelmount) => {
      const { fullStream } = streamText({
        model: modelmount('tiny'),
        prompt: 'Is it warm in Paris?',
        tools: { get_weather: getWeather(sunny) },
        stopWhen: stepCountIs(3),
      })
      return (await collect(fullStream)).map(({ type, text, delta, input, output }) =>
        [type, text ?? delta ?? output ?? input].filter((value) => value !== undefined),
      )
    })
  },

  'a failing tool is reported to the model': () =>
    scripted(inTurn([callOf('Atlantis', 'call_a')], 'It sank.'), async (modelmount, engine) => {
      const fail = async () => {
        throw new Error('There is no such city.')
      }
      const { text } = await generateText({
        model: modelmount('tiny'),
        prompt: 'Is it warm in Atlantis?',
        tools: { get_weather: getWeather(fail) },
        stopWhen: stepCountIs(3),
      })
      return { text, result: engine.requests[1].input.messages.at(-1) }
    }),

  'a tool call that the token limit cuts off is not executed': () => {
    const cut = { call: 'get_weather', arguments: ['{"city":', '"Par', 'is"}'] }
    return scripted([cut], async (modelmount) => {
      const executed = []
      const { toolCalls, finishReason } = await generateText({
        model: modelmount('tiny'),
        prompt: 'Is it warm in Paris?',
        maxOutputTokens: 2,
        tools: { get_weather: getWeather(async ({ city }) => executed.push(city)) },
      })
      return { toolCalls, finishReason, executed }
    })
  },

  'the choice of a tool reaches the engine, and a forced call has no response format': () => {
    const answer = ({ input }) => {
      const { mode, names = ['get_weather'] } = input.toolChoice
      return mode === 'required' ? [{ call: names[0], arguments: { city: 'Paris' } }] : 'Hello.'
    }
    return scripted(answer, async (modelmount, engine) => {
      const common = {
        ...{ model: modelmount('tiny'), prompt: 'Hi' },
        tools: { get_weather: getWeather(), other: getWeather() },
      }
      for (const toolChoice of ['auto', 'none', 'required', { type: 'tool', toolName: 'other' }])
        await generateText({ ...common, toolChoice })
      await generateText({
        ...{ ...common, toolChoice: 'required', output: Output.object({ schema: City }) },
        providerOptions: { modelmount: { parallelToolCalls: false } },
      })
      return engine.requests.map(({ input, format }) => ({
        ...input.toolChoice,
        hasFormat: format !== undefined,
      }))
    })
  },

  'generateObject and Output.object constrain the answer to the schema': () =>
    scripted('{"city":"Paris","isWarm":true}', async (modelmount, engine) => {
      const model = modelmount('tiny')
      const { object } = await generateObject({ model, prompt: 'JSON?', schema: City })
      const { output } = await generateText({
        model,
        prompt: 'JSON?',
        output: Output.object({ schema: City }),
      })
      const { object: free } = await generateObject({ model, prompt: 'JSON?', output: 'no-schema' })
      const formats = engine.requests.map(({ format }) => [
        format.type,
        Object.keys(format.schema?.properties ?? {}),
      ])
      return { object, output, free, formats }
    }),

  'streamObject and partialOutputStream yield partial objects': () =>
    scripted(['{"city":"Par', 'is","isWarm"', ':true}'], async (modelmount) => {
      const settings = { model: modelmount('tiny'), prompt: 'JSON?' }
      const { partialObjectStream, object } = streamObject({ ...settings, schema: City })
      const { partialOutputStream } = streamText({ ...settings, output: Output.object({ schema: City }) })
      return {
        partials: await collect(partialObjectStream),
        object: await object,
        outputs: await collect(partialOutputStream),
      }
    }),

  'embed, embedMany and rerank use the engine': () =>
    scripted('', async (modelmount) => {
      const model = modelmount.embeddingModel('tiny')
      const one = await embed({ model, value: 'Hello' })
      const options = { modelmount: { dimensions: 4 } }
      const many = await embedMany({ model, values: ['Hello', 'Good day'], providerOptions: options })
      const ranked = await rerank({
        ...{ model: modelmount.rerankingModel('tiny'), query: 'red fox', topN: 2 },
        documents: ['a blue cat', 'a red fox', 'a red cat'],
      })
      const objects = await rerank({
        ...{ model: modelmount.rerankingModel('tiny'), query: 'fox' },
        documents: [{ animal: 'cat' }, { animal: 'fox' }],
      })
      return {
        lengths: [one.embedding.length, ...many.embeddings.map(({ length }) => length)],
        tokens: [one.usage.tokens, many.usage.tokens],
        ranked: ranked.rerankedDocuments,
        objects: objects.ranking.length,
      }
    }),

  'the SDK retries an overloaded engine after its retry-after': () => {
    const busy = new LlmError('overloaded', 'Too many calls.', { retryAfterMs: 5 })
    return scripted(inTurn(busy, 'Hello.', busy, 'Hello.'), async (modelmount, engine) => {
      const startedAt = performance.now()
      const { text } = await generateText({ model: modelmount('tiny'), prompt: 'Hi' })
      const streamed = await streamText({ model: modelmount('tiny'), prompt: 'Hi' }).text
      // Without `retry-after-ms`, the SDK waits two seconds.
      const isQuick = performance.now() - startedAt < 1_500
      return { text, streamed, requests: engine.requests.length, isQuick }
    })
  },

  'a rate limit is an APICallError that the SDK may retry, a spending limit is none': async () => {
    const caller = { id: 'ada', limits: { requestsPerMinute: 1 } }
    const ask = (modelmount) => generateText({ model: modelmount('tiny'), prompt: 'Hi', maxRetries: 0 })
    const limited = await scripted(
      'Hello.',
      async (modelmount) => {
        await ask(modelmount)
        return errorOf(ask(modelmount))
      },
      { caller },
    )
    const quota = new LlmError('quota', 'The spending limit is reached.')
    const spent = await scripted(quota, (modelmount) => errorOf(ask(modelmount)))
    const long = new LlmError('rate_limit', 'Tomorrow.', { retryAfterMs: 86_400_000 })
    const tomorrow = await scripted(long, (modelmount) => errorOf(ask(modelmount)))
    return { limited, spent, tomorrow }
  },

  'a caller can use only its models': () =>
    scripted(
      'Hello.',
      async (modelmount) => {
        const { text } = await generateText({ model: modelmount('tiny'), prompt: 'Hi' })
        const denied = await errorOf(generateText({ model: modelmount('large'), prompt: 'Hi' }))
        return { text, denied }
      },
      { caller: { id: 'ada', models: ['tiny'] } },
    ),

  'a stream that fails midway ends with an error part': () =>
    scripted(['Hel', new LlmError('upstream', 'The model is gone.')], async (modelmount) => {
      const onError = () => {} // By default, the SDK prints the error.
      const { fullStream } = streamText({ model: modelmount('tiny'), prompt: 'Hi', onError })
      return (await collect(fullStream)).map(({ type, text, error }) =>
        [type, text ?? error?.message].filter(Boolean),
      )
    }),

  'an abort ends the answer in the engine': () =>
    scripted(
      'word '.repeat(1_000),
      async (modelmount, engine) => {
        const model = modelmount('tiny')
        const whole = new AbortController()
        const generated = errorOf(generateText({ model, prompt: 'Hi', abortSignal: whole.signal }))
        setTimeout(() => whole.abort(), 20)
        const { name } = await generated
        const stream = new AbortController()
        const types = new Set()
        for await (const { type } of streamText({ model, prompt: 'Hi', abortSignal: stream.signal })
          .fullStream) {
          types.add(type)
          if (type === 'text-delta') stream.abort()
        }
        await until(() => engine.running === 0)
        return { name, types: [...types], running: engine.running, requests: engine.requests.length }
      },
      { delayMs: 2 },
    ),

  'a reader that cancels its stream ends the answer in the engine': () =>
    scripted(
      'word '.repeat(1_000),
      async (modelmount, engine) => {
        const { stream } = await modelmount('tiny').doStream({
          prompt: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
        })
        const reader = stream.getReader()
        const first = await reader.read()
        await reader.cancel()
        await until(() => engine.running === 0)
        return { first: first.value, running: engine.running }
      },
      { delayMs: 2 },
    ),

  'an image is refused without a download': () =>
    scripted('Hello.', async (modelmount, engine) => {
      const image = 'http://127.0.0.1:9/cat.png'
      const content = [
        { type: 'text', text: 'What is this?' },
        { type: 'file', data: new URL(image), mediaType: 'image/png' },
      ]
      const error = await errorOf(
        generateText({ model: modelmount('tiny'), messages: [{ role: 'user', content }] }),
      )
      return { error, requests: engine.requests.length }
    }),

  'an unknown option of the provider is an error that names it': () =>
    scripted('Hello.', async (modelmount) => {
      const ask = (modelmountOptions) =>
        errorOf(
          generateText({
            ...{ model: modelmount('tiny'), prompt: 'Hi' },
            providerOptions: { modelmount: modelmountOptions },
          }),
        )
      return [await ask({ min_p: 0.1 }), await ask({ endUser: 7 })]
    }),

  'cache breakpoints of messages, parts and tools are read again': () =>
    scripted('Hello.', async (modelmount, engine) => {
      const providerOptions = { modelmount: { cache: '5m' } }
      const content = [{ type: 'text', text: 'A long text.', providerOptions }]
      const messages = [
        { role: 'user', content },
        { role: 'assistant', content: 'I see.', providerOptions },
        { role: 'user', content: 'And?' },
      ]
      const tools = { get_weather: { ...getWeather(), providerOptions } }
      const system = { role: 'system', content: 'A handbook.', providerOptions }
      const ask = () => generateText({ model: modelmount('tiny'), system, messages, tools })
      const usages = [(await ask()).usage, (await ask()).usage].map(shortUsage)
      const { input } = engine.requests[0]
      return {
        usages,
        marked: [
          input.tools[0].cache,
          ...input.messages.map((message) => message.content[0].cache ?? 'none'),
        ],
      }
    }),

  'log probabilities are in the metadata of the provider': () => {
    const top = []
    const logprobs = [{ id: 1, text: 'Hello', bytes: [72], logprob: -0.5, top }]
    return scripted([{ text: 'Hello', logprobs }], async (modelmount) => {
      const { providerMetadata } = await generateText({
        ...{ model: modelmount('tiny'), prompt: 'Hi' },
        providerOptions: { modelmount: { logprobs: 0 } },
      })
      const { fingerprint, logprobs } = providerMetadata.modelmount
      return { fingerprint, logprobs }
    })
  },

  'an agent calls a tool through middleware': () =>
    scripted(inTurn([callOf('Paris', 'call_a')], 'Warm.'), async (modelmount, engine) => {
      const middleware = sdk.defaultSettingsMiddleware({ settings: { temperature: 0.2 } })
      const agent = new sdk.ToolLoopAgent({
        model: sdk.wrapLanguageModel({ model: modelmount('tiny'), middleware }),
        instructions: 'Be brief.',
        tools: { get_weather: getWeather(sunny) },
      })
      const { text } = await agent.generate({ prompt: 'Is it warm in Paris?' })
      const { sampling, input } = engine.requests[1]
      return { text, sampling, roles: input.messages.map(({ role }) => role) }
    }),

  'a response for a chat page streams events': () =>
    scripted('Hello there.', async (modelmount) => {
      const response = streamText({ model: modelmount('tiny'), prompt: 'Hi' }).toUIMessageStreamResponse()
      const lines = (await response.text()).split('\n').filter((line) => line.startsWith('data: {'))
      const type = response.headers.get('content-type')
      return { type, events: lines.map((line) => JSON.parse(line.slice(6)).type) }
    }),

  'a registry of providers finds the models': () =>
    scripted('Hello.', async (modelmount) => {
      const registry = sdk.createProviderRegistry({ modelmount })
      const { text } = await generateText({ model: registry.languageModel('modelmount:tiny'), prompt: 'Hi' })
      const { embedding } = await embed({ model: registry.embeddingModel('modelmount:tiny'), value: 'Hi' })
      return { text, length: embedding.length }
    }),
}

/** Situations with the local engine. Its folder of models has an embedding model with the name `encoder`. */
export const realSituations = {
  'the built-in model answers, and streams the same answer': async (modelmount) => {
    const settings = { model: modelmount('tiny'), prompt: 'Hello', temperature: 0 }
    const { text, finishReason } = await generateText(settings)
    const pieces = await collect(streamText(settings).textStream)
    return { text, finishReason, isSame: pieces.join('') === text, isStream: pieces.length > 3 }
  },

  'the answer of the built-in model matches the schema': async (modelmount) => {
    const settings = {
      model: modelmount('tiny'),
      prompt: 'Which city is warm? Answer as JSON.',
      temperature: 0,
    }
    const { object } = await generateObject({ ...settings, schema: City })
    const { output } = await generateText({ ...settings, output: Output.object({ schema: City }) })
    const streamed = streamObject({ ...settings, schema: City })
    const partials = await collect(streamed.partialObjectStream)
    return {
      areValid: [object, output, await streamed.object].map((value) => City.safeParse(value).success),
      hasPartials: partials.length > 1,
    }
  },

  'the built-in model calls a tool and reads its result': async (modelmount) => {
    const { text, steps } = await generateText({
      ...{ model: modelmount('tiny'), prompt: 'What is the weather in Paris?', temperature: 0 },
      tools: { get_weather: getWeather(sunny) },
      stopWhen: stepCountIs(3),
    })
    const [call] = steps[0].toolCalls
    return { toolName: call.toolName, input: call.input, steps: steps.length, mentions: text.includes('21') }
  },

  'a forced tool call matches its schema': async (modelmount) => {
    const { toolCalls, finishReason } = await generateText({
      ...{ model: modelmount('tiny'), prompt: 'Hello', temperature: 0 },
      tools: { get_weather: getWeather() },
      toolChoice: { type: 'tool', toolName: 'get_weather' },
      providerOptions: { modelmount: { parallelToolCalls: false } },
    })
    return { types: toolCalls.map(({ input }) => typeof input.city), finishReason }
  },

  'an abort stops the built-in model, which then answers the next call': async (modelmount) => {
    const model = modelmount('tiny')
    const user = new AbortController()
    const endless = { providerOptions: { modelmount: { ignoreEos: true } }, abortSignal: user.signal }
    const types = new Set()
    for await (const { type } of streamText({ model, prompt: 'Hello', ...endless }).fullStream) {
      types.add(type)
      if (type === 'text-delta') user.abort()
    }
    const { text } = await generateText({ model, prompt: 'Hello', temperature: 0 })
    return { last: [...types].at(-1), text }
  },

  'the encoder embeds texts': async (modelmount) => {
    const { embeddings } = await embedMany({
      ...{ model: modelmount.embeddingModel('encoder'), values: ['Hello', 'A fox ran.', 'Hello'] },
    })
    const [first, second, third] = embeddings
    return {
      lengths: embeddings.map(({ length }) => length),
      cosines: [sdk.cosineSimilarity(first, third) > 0.999, sdk.cosineSimilarity(first, second) > 0.999],
    }
  },

  'errors of the engine name the field': async (modelmount) => {
    const unknown = await errorOf(generateText({ model: modelmount('nope'), prompt: 'Hi' }))
    const wrong = await errorOf(generateText({ model: modelmount('tiny'), prompt: 'Hi', temperature: -1 }))
    const long = await errorOf(generateText({ model: modelmount('tiny'), prompt: 'long '.repeat(9_000) }))
    return [unknown, wrong, long].map(({ name, statusCode, data, message }) => ({
      name,
      statusCode,
      data,
      message,
    }))
  },
}

/** Waits at most two seconds until a condition holds. */
async function until(holds) {
  for (const deadline = performance.now() + 2_000; !holds() && performance.now() < deadline; )
    await new Promise((resolve) => setTimeout(resolve, 2))
}
