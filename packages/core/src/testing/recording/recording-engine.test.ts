import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { emptyFolder } from '../../../../../test/support/empty-folder.ts'
import type { Engine } from '../../engine/engine.ts'
import type { GenerateEvent } from '../../engine/events.ts'
import type { GenerateRequest } from '../../engine/request.ts'
import { LlmError } from '../../errors.ts'
import { scriptedEngine } from '../scripted-engine.ts'
import { recordingEngine } from './recording-engine.ts'

const live = (): { signal: AbortSignal } => ({ signal: new AbortController().signal })
const ask = (text: string, more: Partial<GenerateRequest> = {}): GenerateRequest => ({
  model: 'tiny',
  input: { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text }] }] },
  ...more,
})
const newFile = (): string => join(emptyFolder(), 'answers.json')
const withoutTimings = (event: GenerateEvent): object => ({ ...event, timings: undefined })

async function all(events: AsyncIterable<GenerateEvent>): Promise<GenerateEvent[]> {
  const read: GenerateEvent[] = []
  for await (const event of events) read.push(event)
  return read
}
const generate = (engine: Engine, request: GenerateRequest): Promise<GenerateEvent[]> =>
  all(engine.generate(request, live()))
const textOf = async (engine: Engine, request: GenerateRequest): Promise<string> =>
  (await generate(engine, request)).map((event) => (event.type === 'text' ? event.text : '')).join('')
const errorOf = async (promise: Promise<unknown>): Promise<LlmError> =>
  promise.then(
    () => expect.unreachable(),
    (error: unknown) => error as LlmError,
  )

/** Answers with a counter, so that each answer is different. */
function countingEngine(): Engine {
  let count = 0
  return scriptedEngine(() => `Answer ${++count}.`)
}

test('a replay has the recorded events in their order, with the usage and without the engine', async () => {
  const file = newFile()
  const script = scriptedEngine([{ reasoning: 'Hm.' }, 'Hel', 'lo.', { call: 'now' }])
  const recorded = await generate(recordingEngine(script, file, { mode: 'record' }), ask('Hi'))

  const replayed = await generate(recordingEngine(undefined, file), ask('Hi'))

  expect(replayed.map(withoutTimings)).toEqual(recorded.map(withoutTimings))
  expect(replayed.at(-1)).toMatchObject({ type: 'end', usage: { outputTokens: 4 } })
})

test('every method is recorded and replayed', async () => {
  const file = newFile()
  const useAll = async (engine: Engine): Promise<object> => {
    const { embeddings, inputTokens } = await engine.embed({ model: 'tiny', inputs: ['a', [1, 2]] }, live())
    await engine.load('tiny', { contextSize: 512 }, live())
    const loaded = engine.loaded()
    const results = [
      await engine.countTokens(ask('Hi'), live()),
      await engine.render(ask('Hi'), live()),
      await engine.rerank({ model: 'tiny', query: 'a', documents: ['a b', 'c'] }, live()),
      await engine.tokenize({ model: 'tiny', text: 'Hi' }, live()),
      await engine.detokenize({ model: 'tiny', tokens: [72, 105] }, live()),
    ]
    await engine.unload('tiny')
    return { embeddings, inputTokens, loaded, results, afterwards: engine.loaded() }
  }
  const recorded = await useAll(recordingEngine(scriptedEngine('Hi.'), file, { mode: 'record' }))

  const engine = recordingEngine(undefined, file)
  const replayed = await useAll(engine)

  expect(replayed).toEqual(recorded)
  expect(replayed).toMatchObject({ loaded: [{ name: 'tiny', contextSize: 512 }], afterwards: [] })
  expect(engine.unused()).toEqual([])
})

test('equal requests replay in the order of their recordings, and each once', async () => {
  const file = newFile()
  const recorder = recordingEngine(countingEngine(), file, { mode: 'record' })
  await generate(recorder, ask('Hi'))
  await generate(recorder, ask('Ho'))
  await generate(recorder, ask('Hi'))

  const engine = recordingEngine(undefined, file)
  const texts = [await textOf(engine, ask('Hi')), await textOf(engine, ask('Hi'))]

  expect(texts).toEqual(['Answer 1.', 'Answer 3.'])
  expect(engine.unused()).toEqual([{ method: 'generate', request: ask('Ho') }])
  expect((await errorOf(generate(engine, ask('Hi')))).message).toContain(
    'this `generate` request is recorded 2 times, and was already replayed',
  )
})

test('concurrent calls are recorded in the order in which they begin', async () => {
  const file = newFile()
  const script = scriptedEngine(async ({ model }) => {
    if (model === 'slow') await new Promise(setImmediate)
    return model
  })
  const recorder = recordingEngine(script, file, { mode: 'record' })
  await Promise.all(['slow', 'fast'].map((model) => generate(recorder, ask('Hi', { model }))))

  const engine = recordingEngine(undefined, file)
  const texts = await Promise.all(['fast', 'slow'].map((model) => textOf(engine, ask('Hi', { model }))))

  expect(texts).toEqual(['fast', 'slow'])
  const { recordings } = JSON.parse(readFileSync(file, 'utf8'))
  expect(recordings.map(({ request }: { request: GenerateRequest }) => request.model)).toEqual([
    'slow',
    'fast',
  ])
})

test('a repeated result of a method other than generate is stored once, and repeats', async () => {
  const file = newFile()
  const recorder = recordingEngine(scriptedEngine(''), file, { mode: 'record' })
  for (const _ of [1, 2, 3]) await recorder.countTokens(ask('Hi'), live())

  const engine = recordingEngine(undefined, file)
  const counts = [await engine.countTokens(ask('Hi'), live()), await engine.countTokens(ask('Hi'), live())]

  expect(counts).toEqual([1, 1])
  expect(JSON.parse(readFileSync(file, 'utf8')).recordings).toHaveLength(1)
})

test('while calls are recorded, even repeated ones reach the engine', async () => {
  const script = scriptedEngine('Hi.')
  const recorder = recordingEngine(script, newFile(), { mode: 'record' })

  for (const _ of [1, 2]) {
    await recorder.load('tiny', {}, live())
    expect(script.loaded()).toHaveLength(1)
    await recorder.unload('tiny')
    expect(script.loaded()).toEqual([])
  }

  expect(recorder.loaded()).toEqual([])
  expect(recorder.unused()).toEqual([])
})

test('an unknown request names what differs from the nearest recording', async () => {
  const file = newFile()
  const recorder = recordingEngine(scriptedEngine('Hi.'), file, { mode: 'record' })
  await generate(recorder, ask('Tell me a joke.'))
  await generate(recorder, ask('What is the capital of Spain?', { maxTokens: 20 }))

  const engine = recordingEngine(undefined, file)
  const error = await errorOf(generate(engine, ask('What is the capital of Italy?', { maxTokens: 30 })))

  expect(error.code).toBe('internal')
  expect(error.message).toBe(
    [
      `${file}: no recording of this \`generate\` request. The nearest one, recordings[1], differs in:`,
      '  input.messages[0].content[0].text: recorded "What is the capital of Spain?", got "What is the capital of Italy?"',
      '  maxTokens: recorded 20, got 30',
      "To record it, set `mode: 'auto'` in recordingEngine(), or `mode: 'record'` to record all calls again.",
    ].join('\n'),
  )
})

test('a method without any recording is named', async () => {
  const file = newFile()
  await generate(recordingEngine(scriptedEngine('Hi.'), file, { mode: 'record' }), ask('Hi'))

  const error = await errorOf(recordingEngine(undefined, file).render(ask('Hi'), live()))

  expect(error.message).toContain(`${file}: no recording of \`render\`.`)
})

test('auto replays what the file has, and records the rest', async () => {
  const file = newFile()
  await generate(recordingEngine(scriptedEngine('Old.'), file, { mode: 'auto' }), ask('Hi'))

  const engine = recordingEngine(scriptedEngine('New.'), file, { mode: 'auto' })
  const texts = [await textOf(engine, ask('Hi')), await textOf(engine, ask('Ho'))]

  expect(texts).toEqual(['Old.', 'New.'])
  const replay = recordingEngine(undefined, file)
  expect([await textOf(replay, ask('Hi')), await textOf(replay, ask('Ho'))]).toEqual(['Old.', 'New.'])
})

test('record replaces the file at the first call', async () => {
  const file = newFile()
  await generate(recordingEngine(scriptedEngine('Old.'), file, { mode: 'record' }), ask('Hi'))
  const before = readFileSync(file, 'utf8')

  const engine = recordingEngine(scriptedEngine('New.'), file, { mode: 'record' })
  const untouched = readFileSync(file, 'utf8')
  await generate(engine, ask('Ho'))

  expect(untouched).toBe(before)
  const { recordings } = JSON.parse(readFileSync(file, 'utf8'))
  expect(recordings).toHaveLength(1)
  expect(recordings[0].request).toEqual(ask('Ho'))
})

test('an error replays after the events before it', async () => {
  const file = newFile()
  const error = new LlmError('context_length', 'Too long.', { inputTokens: 9, contextSize: 8 })
  const recorder = recordingEngine(scriptedEngine(['Hel', error]), file, { mode: 'record' })
  await errorOf(generate(recorder, ask('Hi')))

  const types: string[] = []
  const replaying = (async () => {
    for await (const { type } of recordingEngine(undefined, file).generate(ask('Hi'), live()))
      types.push(type)
  })()

  expect(await errorOf(replaying)).toMatchObject({
    code: 'context_length',
    message: 'Too long.',
    details: { inputTokens: 9, contextSize: 8 },
  })
  expect(types).toEqual(['start', 'text'])
})

test('tokens that were evaluated before an error count in the replay, too', async () => {
  const file = newFile()
  const failing: Engine = {
    ...scriptedEngine(''),
    embed: async (_request, { onInputTokens }) => {
      onInputTokens?.(3)
      onInputTokens?.(4)
      throw new LlmError('upstream', 'The process ended.')
    },
  }
  const embed = async (engine: Engine): Promise<number> => {
    let tokens = 0
    const onInputTokens = (count: number): void => {
      tokens += count
    }
    const call = { ...live(), onInputTokens }
    expect((await errorOf(engine.embed({ model: 'tiny', inputs: ['a', 'b'] }, call))).code).toBe('upstream')
    return tokens
  }

  expect(await embed(recordingEngine(failing, file, { mode: 'record' }))).toBe(7)
  expect(await embed(recordingEngine(undefined, file))).toBe(7)
})

test('a call that was aborted, or whose events were not read to the end, is not recorded', async () => {
  const file = newFile()
  const recorder = recordingEngine(scriptedEngine('one two three'), file, { mode: 'record' })
  const controller = new AbortController()
  for await (const { type } of recorder.generate(ask('aborted'), { signal: controller.signal }))
    if (type === 'text') controller.abort()
  for await (const _event of recorder.generate(ask('left'), live())) break
  await generate(recorder, ask('Hi'))

  const { recordings } = JSON.parse(readFileSync(file, 'utf8'))

  expect(recordings).toHaveLength(1)
  expect(recordings[0].request).toEqual(ask('Hi'))
})

test('an abort ends a replay as it ends an answer', async () => {
  const file = newFile()
  const recorder = recordingEngine(scriptedEngine('one two three'), file, { mode: 'record' })
  await generate(recorder, ask('Hi'))
  await recorder.countTokens(ask('Hi'), live())
  const engine = recordingEngine(undefined, file)
  const controller = new AbortController()

  const types: string[] = []
  for await (const { type } of engine.generate(ask('Hi'), { signal: controller.signal })) {
    types.push(type)
    if (type === 'text') controller.abort()
  }

  expect(types).toEqual(['start', 'text'])
  expect((await errorOf(engine.countTokens(ask('Hi'), { signal: controller.signal }))).name).toBe(
    'AbortError',
  )
})

test('normalize decides what is matched and stored, and the engine gets the original', async () => {
  const file = newFile()
  const script = scriptedEngine('Hi.')
  const normalize = (request: object): object =>
    JSON.parse(JSON.stringify(request).replace(/\d{4}-\d{2}-\d{2}/g, 'DATE'))
  await generate(recordingEngine(script, file, { mode: 'record', normalize }), ask('Today is 2026-01-31.'))

  const text = await textOf(recordingEngine(undefined, file, { normalize }), ask('Today is 2026-02-01.'))

  expect(text).toBe('Hi.')
  expect(script.requests).toEqual([ask('Today is 2026-01-31.')])
  expect(readFileSync(file, 'utf8')).toContain('Today is DATE.')
})

test('a call with a denied context size does not match a call without one', async () => {
  const file = newFile()
  const recorder = recordingEngine(scriptedEngine(''), file, { mode: 'record' })
  await recorder.load('tiny', {}, live())

  const loading = recordingEngine(undefined, file).load(
    'tiny',
    {},
    { ...live(), requestedContextSize: 8_192 },
  )

  expect((await errorOf(loading)).message).toContain('requestedContextSize: recorded nothing, got 8192')
})

test('the file has sorted keys and a line per event, and no folder or temporary file is missing or left', async () => {
  const folder = emptyFolder()
  const file = join(folder, 'recordings', 'answers.json')
  await generate(recordingEngine(scriptedEngine('Hi there.'), file, { mode: 'record' }), ask('Hi'))

  expect(readdirSync(join(folder, 'recordings'))).toEqual(['answers.json'])
  expect(readFileSync(file, 'utf8')).toBe(`{
  "version": 1,
  "models": {"tiny":{"contextSize":4096,"name":"tiny"}},
  "recordings": [
    {
      "method": "generate",
      "request": {"input":{"kind":"chat","messages":[{"content":[{"text":"Hi","type":"text"}],"role":"user"}]},"model":"tiny"},
      "events": [
        {
          "cacheReadTokens": 0,
          "cacheWriteTokens": {"1h":0,"5m":0},
          "fingerprint": "fp_scripted",
          "inputTokens": 1,
          "model": "tiny",
          "reusedTokens": 0,
          "type": "start"
        },
        {"text":"Hi","tokens":1,"type":"text"},
        {"text":" there.","tokens":1,"type":"text"},
        {
          "finishReason": "stop",
          "type": "end",
          "usage": {"cacheReadTokens":0,"cacheWriteTokens":{"1h":0,"5m":0},"inputTokens":1,"outputTokens":2,"reusedTokens":0}
        }
      ]
    }
  ]
}
`)
})

test('a file that was formatted by another tool still replays', async () => {
  const file = newFile()
  await generate(recordingEngine(scriptedEngine('Hi.'), file, { mode: 'record' }), ask('Hi'))
  const reversed = (_key: string, value: unknown): unknown =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).reverse())
      : value
  writeFileSync(file, JSON.stringify(JSON.parse(readFileSync(file, 'utf8')), reversed, 4))

  expect(await textOf(recordingEngine(undefined, file), ask('Hi'))).toBe('Hi.')
})

test('invalid options and files are rejected', () => {
  const file = newFile()
  const invalid = newFile()
  writeFileSync(invalid, '{ "version": 2 }')
  const noJson = newFile()
  writeFileSync(noJson, 'answers')

  expect(() => recordingEngine(undefined, file)).toThrow(`${file}: the file to replay does not exist.`)
  expect(() => recordingEngine(undefined, file, { mode: 'auto' })).toThrow('Expected an engine')
  expect(() => recordingEngine(undefined, file, { mode: 'once' as 'auto' })).toThrow(
    'Expected `mode` to be one of replay, auto, record, got once',
  )
  expect(() => recordingEngine(undefined, file, { modus: 'auto' } as object)).toThrow(
    'Unknown option `modus`',
  )
  expect(() => recordingEngine(undefined, invalid)).toThrow(`${invalid}: not a recording of this version.`)
  expect(() => recordingEngine(undefined, noJson)).toThrow(`${noJson}: Unexpected token`)
})

test('a file that cannot be written is an error of the call', async () => {
  const file = join(newFile(), 'below-a-file.json')
  writeFileSync(join(file, '..'), '')

  const error = await errorOf(
    recordingEngine(scriptedEngine(''), file, { mode: 'record' }).countTokens(ask('Hi'), live()),
  )

  expect(error).toMatchObject({ code: 'internal', message: expect.stringContaining(`${file}: E`) })
})
