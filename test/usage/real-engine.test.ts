import { readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Caller, createLlm, type Llm } from '@modelmount/core'
import type { CacheLifetime, GenerateRequest, Message } from '@modelmount/core/engine'
import { modelPath } from '@modelmount/tiny-model'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { internals } from '../../packages/core/src/llm.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { noiseModel } from '../support/models.ts'
import '../support/own-run-folder.ts'

const folder = emptyFolder()
let llm: Llm

beforeAll(async () => {
  llm = await createLlm({
    models: noiseModel,
    database: `${folder}/modelmount.db`,
    prices: { 'tiny-llama-spm.f16': { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } },
    local: { threads: 1, contextSize: 256 },
  })
})
afterAll(() => llm.close())

const payer = (id: string, nanoUsd: number): Caller => ({
  id,
  spendingLimit: { usd: nanoUsd / 1e9, period: 'day' },
})
const ask = (
  caller: Caller,
  maxTokens?: number,
  { signal = new AbortController().signal, text = 'Once upon a time' } = {},
) =>
  llm.generate(
    {
      model: 'tiny-llama-spm.f16',
      input: { kind: 'text', prompt: [text], template: false },
      ...(maxTokens !== undefined && { maxTokens }),
      sampling: { seed: 1, ignoreEos: true },
    },
    { signal, caller, stream: true },
  )

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const read: Item[] = []
  for await (const item of items) read.push(item)
  return read
}

test('the remaining spending limit bounds the tokens of an answer exactly', async () => {
  const input = await llm.countTokens(
    { model: 'tiny-llama-spm.f16', input: { kind: 'text', prompt: ['Once upon a time'], template: false } },
    { signal: new AbortController().signal },
  )
  const caller = payer('short', input * 1_000 + 7 * 2_000 + 1_999)

  const events = await all(await ask(caller))

  expect(events.at(-1)).toMatchObject({
    finishReason: 'length',
    usage: { inputTokens: input, outputTokens: 7 },
  })
  expect(await llm.usage.calls({ caller: 'short' })).toMatchObject([
    { status: 'ended', nanoUsd: input * 1_000 + 7 * 2_000 },
  ])
})

test('an answer without maxTokens reserves the cost of at most one context', async () => {
  const caller = payer('rich', 256 * 2_000 * 3)

  const answers = await Promise.all([ask(caller), ask(caller)])
  const ended = await Promise.all(answers.map(all))

  expect(ended.map((events) => events.at(-1)?.type)).toEqual(['end', 'end'])
})

test('a spending limit does not shorten the answer to a truncated conversation', async () => {
  const text = (text: string) => [{ type: 'text', text }] as const
  const messages = Array.from({ length: 41 }, (_, index) => ({
    role: index % 2 ? 'assistant' : 'user',
    content: text(index % 2 ? `It was fox number ${index}.` : `Tell me of fox number ${index}, please.`),
  }))
  const long = {
    model: 'tiny-chat',
    input: { kind: 'chat', messages },
    overflow: 'truncate',
    maxTokens: 40,
    sampling: { seed: 1, ignoreEos: true },
  } as const
  const chat = await createLlm({
    models: modelPath,
    database: `${folder}/long.db`,
    prices: { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } },
    local: { threads: 1, contextSize: 256 },
  })
  try {
    const signal = new AbortController().signal
    const ends = []
    for (const caller of [{ id: 'free' }, payer('limited', 1e9)])
      ends.push((await all(await chat.generate(long, { signal, caller, stream: true }))).at(-1))
    const [free, limited] = ends

    expect(await chat.countTokens(long, { signal })).toBeGreaterThan(256)
    expect(free).toMatchObject({ finishReason: 'length', usage: { outputTokens: 40 } })
    expect(limited).toMatchObject({ finishReason: 'length', usage: { outputTokens: 40 } })
    expect(await chat.usage.calls({ caller: 'limited' })).toMatchObject([{ status: 'ended' }])
  } finally {
    await chat.close()
  }
})

test('the calls over time have as many cached tokens as the report of usage', async () => {
  const caller = { id: 'repeats' }
  const text = 'Once upon a time there was a fox. '.repeat(8)
  for (let count = 0; count < 3; count++) await all(await ask(caller, 3, { text }))

  const [usage] = await llm.usage.report({ by: 'key', caller: 'repeats' })
  const traffic = await llm[internals].traffic({ by: 'key', key: 'repeats' })

  const { input = 0, cachedInput = 0, output = 0 } = usage?.tokens ?? {}
  expect(cachedInput).toBeGreaterThan(0)
  expect(traffic).toMatchObject([
    { calls: 3, inputTokens: input + cachedInput, cachedInputTokens: cachedInput, outputTokens: output },
  ])
})

/** Writes the file of a model process that logs `r` for each rendered prompt, and `t` for each tokenized text. */
async function writeLoggingProcess(logFile: string): Promise<string> {
  const real = pathToFileURL(createRequire(import.meta.url).resolve('@modelmount/core/model-process'))
  const sourceOf = (path: string): string => JSON.stringify(new URL(path, real).href)
  const file = join(folder, 'logging-process.mjs')
  await writeFile(
    file,
    `import { appendFileSync } from 'node:fs'
     import { PromptRenderer } from ${sourceOf('./render.js')}
     import { Tokenizer } from ${sourceOf('./prompt/tokenizer.js')}
     const log = ({ prototype }, name, letter) => {
       const run = prototype[name]
       prototype[name] = function (...given) {
         appendFileSync(${JSON.stringify(logFile)}, letter)
         return run.apply(this, given)
       }
     }
     log(PromptRenderer, 'render', 'r')
     log(Tokenizer, 'tokenize', 't')
     await import(${JSON.stringify(real.href)})`,
  )
  return file
}

test('with a spending limit, a chat with four breakpoints is rendered and tokenized twice', async () => {
  const logFile = join(folder, 'texts.log')
  const say = (role: string, text: string, cache: CacheLifetime): Message => ({
    role,
    content: [{ type: 'text', text, cache }],
  })
  const messages = [
    say('system', 'Be brief.', '1h'),
    say('user', 'Hi', '5m'),
    say('assistant', 'Yes?', '5m'),
    say('user', 'No.', '5m'),
  ]
  const request: GenerateRequest = { model: 'tiny-chat', input: { kind: 'chat', messages }, maxTokens: 1 }
  const chat = await createLlm({
    models: modelPath,
    database: `${folder}/texts.db`,
    prices: { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } },
    // No other test has this context size, so the app shares no model process with another one.
    local: { threads: 1, contextSize: 320, modelProcessPath: await writeLoggingProcess(logFile) },
  })
  try {
    const { signal } = new AbortController()
    const caller = payer('cached', 1e9)

    const events = await all(await chat.generate(request, { signal, caller, stream: true }))

    expect(events.at(-1)).toMatchObject({ type: 'end', usage: { outputTokens: 1 } })
    expect(await readFile(logFile, 'utf8')).toBe('rtrt')
  } finally {
    await chat.close()
  }
})

test('a spending limit admits only the concurrent calls that it covers, aborted calls included', async () => {
  const caller = payer('busy', 100_000)
  const outcomes = await Promise.allSettled(
    Array.from({ length: 12 }, async (_, index) => {
      const controller = new AbortController()
      let read = 0
      for await (const event of await ask(caller, 12, controller))
        if (event.type === 'text' && ++read === 3 && index % 2) controller.abort()
    }),
  )

  const calls = await llm.usage.calls({ caller: 'busy' })
  const [sum] = await llm.usage
    .report({ by: 'key' })
    .then((rows) => rows.filter(({ group }) => group === 'busy'))
  const ran = outcomes.filter(({ status }) => status === 'fulfilled').length
  expect(ran).toBeGreaterThan(0)
  expect(ran).toBeLessThan(12)
  expect(calls).toHaveLength(ran)
  expect(sum?.nanoUsd).toBe(calls.reduce((all, { nanoUsd }) => all + BigInt(nanoUsd), 0n))
  expect(sum?.nanoUsd).toBeLessThanOrEqual(100_000n)
  for (const { tokens, nanoUsd, status } of calls) {
    expect(nanoUsd).toBe(tokens.input * 1_000 + tokens.cachedInput * 100 + tokens.output * 2_000)
    if (status === 'ended') expect(tokens.output).toBe(12)
  }
})
