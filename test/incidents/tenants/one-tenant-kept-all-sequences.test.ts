/**
 * Incident C-6: accepted calls starved. One tenant with four endless answers kept the others waiting for 51 s.
 */
import { type Caller, createLlm, type Llm } from '@modelmount/core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { noiseModel } from '../../support/models.ts'
import '../../support/own-run-folder.ts'

/** The longest time between two decisions of the scheduler about slots. */
const sliceMs = 1_000

let llm: Llm
let leaving: AbortController
let ended: Promise<unknown>[] = []

beforeAll(async () => {
  leaving = new AbortController()
  llm = await createLlm({ models: noiseModel, auth: 'host', local: { contextSize: 4096, parallel: 4 } })
  await measureFirstToken({ id: 'warm-up' }, 'Hello')
})
afterEach(async () => {
  leaving.abort()
  await Promise.all(ended)
  leaving = new AbortController()
  ended = []
})
afterAll(() => llm.close())

interface Asked {
  readonly seed?: number
  readonly maxTokens?: number
  readonly signal?: AbortSignal
}

async function* ask(caller: Caller, text: string, { seed, maxTokens, signal = leaving.signal }: Asked = {}) {
  const generation = await llm.generate(
    {
      model: 'tiny-llama-spm.f16',
      input: { kind: 'text', prompt: [text], template: false },
      ...(maxTokens !== undefined && { maxTokens }),
      sampling: { temperature: 1, ignoreEos: true, ...(seed !== undefined && { seed }) },
    },
    { signal, caller },
  )
  for await (const event of generation) if (event.type === 'text') yield event.text
}

/** Time from the call to its first token, in ms. */
async function measureFirstToken(caller: Caller, text: string): Promise<number> {
  const from = performance.now()
  for await (const _ of ask(caller, text, { maxTokens: 2, signal: new AbortController().signal }))
    return performance.now() - from
  throw new Error('There was no token.')
}

/** Begins answers that fill the whole context, and waits until one of them has some text. */
async function flood(callers: readonly Caller[], seed?: number): Promise<void> {
  const begun = callers.map(
    (caller, index) =>
      new Promise<void>((resolve, reject) => {
        const read = async (): Promise<void> => {
          let pieces = 0
          const options = seed === undefined ? {} : { seed: seed + index }
          for await (const _ of ask(caller, `Story ${index}:`, options)) if (++pieces === 50) resolve()
        }
        ended.push(read().catch(reject))
      }),
  )
  for (const one of begun) one.catch(() => {})
  await Promise.race(begun)
}

const times = <T>(count: number, item: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => item(i))
const words = (count: number, from: number): string => times(count, (i) => `word${(from + i) % 97}`).join(' ')

test.each([
  ['of one caller', () => times(20, () => ({ id: 'greedy' })), undefined],
  ['of one caller with seeds', () => times(20, () => ({ id: 'greedy' })), 1],
  [
    'of ten callers of one tenant',
    () => times(20, (i) => ({ id: `key ${i % 10}`, tenant: 'team' })),
    undefined,
  ],
  ['of ten tenants', () => times(20, (i) => ({ id: `tenant ${i % 10}` })), undefined],
])(
  'while endless answers %s fill all sequences, the first token of another tenant comes within twice its own time and a slice',
  async (_, callers, seed) => {
    const alone = await measureFirstToken({ id: 'calm' }, words(200, 1))
    await flood(callers(), seed)

    const beside = await measureFirstToken({ id: 'calm' }, words(200, 50))

    expect(beside).toBeLessThan(2 * alone + sliceMs)
  },
)

test('and its whole answer is not several times slower', async () => {
  const measure = async (seed: number): Promise<number> => {
    const from = performance.now()
    const { signal } = new AbortController()
    for await (const _ of ask({ id: 'calm' }, 'Once', { seed, maxTokens: 200, signal }));
    return performance.now() - from
  }
  const alone = await measure(7)
  await flood(
    times(4, () => ({ id: 'greedy' })),
    1,
  )

  const beside = await measure(8)

  // Half of the decode steps are its own. Without shares, it would get a quarter of them.
  expect(beside).toBeLessThan(2.8 * alone + sliceMs)
})

test('and with seeds, more tenants than sequences get the texts that each of them gets alone', async () => {
  const read = async (tenant: number): Promise<string> => {
    let text = ''
    const { signal } = new AbortController()
    const options = { seed: tenant, maxTokens: 400, signal }
    for await (const piece of ask({ id: `tenant ${tenant}` }, `Chapter ${tenant}:`, options)) text += piece
    return text
  }
  const tenants = times(7, (tenant) => tenant)
  const alone: string[] = []
  for (const tenant of tenants) alone.push(await read(tenant))

  const beside = await Promise.all(tenants.map(read))

  expect(beside).toEqual(alone)
})
