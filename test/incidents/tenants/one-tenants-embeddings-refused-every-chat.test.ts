/**
 * Incident C-6: queues without bounds. The bounds were common to all tenants, so one tenant with many or large
 * calls used them up. Then every call of the others was rejected with 503.
 */
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { type Caller, createLlm, type Llm, type LlmError } from '@modelmount/core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { encoderModel, noiseModel } from '../../support/models.ts'

const maxCalls = 6
const maxPromptCharacters = 2 ** 20
const ann: Caller = { id: 'ann' }
const ben: Caller = { id: 'ben' }
const soon = { timeout: 10_000, interval: 1 }

let folder: string
let llm: Llm

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'shares-'))
  await copyFile(encoderModel, join(folder, 'encoder.gguf'))
  await copyFile(noiseModel, join(folder, 'chat.gguf'))
  llm = await createLlm({
    models: folder,
    auth: 'host',
    local: { maxCalls, maxPromptCharacters, contextSize: 512 },
  })
  await chat(ben)
  await embed(ben, ['Hello'])
})

afterAll(async () => {
  await llm.close()
  await rm(folder, { recursive: true })
})

const live = (): AbortSignal => new AbortController().signal

/** Returns the number of events. */
async function chat(caller: Caller): Promise<number> {
  let events = 0
  const input = { kind: 'text' as const, prompt: ['Hello'] }
  const request = { model: 'chat', input, maxTokens: 4, sampling: { ignoreEos: true } }
  for await (const _event of await llm.generate(request, { signal: live(), caller })) events++
  return events
}
const embed = (caller: Caller, inputs: readonly string[], signal = live()) =>
  llm.embed({ model: 'encoder', inputs, overflow: 'truncate' }, { caller, signal })
const tokenize = (caller: Caller, text: string, signal = live()) =>
  llm.tokenize({ model: 'chat', text }, { caller, signal })

const textOf = (characters: number): string => 'fox '.repeat(characters / 4)
const textsOf = (characters: number): readonly string[] =>
  Array<string>(characters / 2_048).fill(textOf(2_048))

interface Flood {
  readonly count: number
  readonly start: (signal: AbortSignal) => Promise<unknown>
  readonly probe: () => Promise<unknown>
}
const half = maxPromptCharacters / 2
const floods: Readonly<Record<string, Flood>> = {
  'many embedding calls': {
    count: maxCalls,
    start: (signal) => embed(ann, textsOf(half / 4), signal),
    probe: () => embed(ann, ['x']),
  },
  'large embedding calls': {
    count: 2,
    start: (signal) => embed(ann, textsOf(half), signal),
    probe: () => embed(ann, ['x']),
  },
  'calls that tokenize long texts': {
    count: 2,
    start: (signal) => tokenize(ann, textOf(half), signal),
    probe: () => tokenize(ann, 'x'),
  },
}

test.each(Object.entries(floods))(
  'while one tenant has %s, another one chats, counts and embeds',
  async (_what, { count, start, probe }) => {
    const leaving = new AbortController()
    const repeat = async (): Promise<void> => {
      // The probe may take the room of a call.
      while (!leaving.signal.aborted) await start(leaving.signal).catch(() => setImmediate())
    }
    const flood = Array.from({ length: count }, repeat)
    await expect.poll(() => probe().catch(({ code }: LlmError) => code), soon).toBe('overloaded')

    const results = await Promise.allSettled([
      ...[chat(ben), chat(ben), embed(ben, ['Hello'])],
      ...[tokenize(ben, 'Hello'), tokenize(ben, 'Hello')],
    ])
    leaving.abort()
    await Promise.all(flood)

    expect(results.filter(({ status }) => status === 'rejected')).toEqual([])
    expect(await chat(ann)).toBeGreaterThan(1)
  },
)
