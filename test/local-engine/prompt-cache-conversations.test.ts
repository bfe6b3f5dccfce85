/** Many conversations share few places: what each of them begins with stays warm, and answers are those of cold runs. */
import { createLlm, type Llm } from '@modelmount/core'
import type { Message, Tool } from '@modelmount/core/engine'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { cached, type Marked, message, notes, part, readMarked } from '../support/marked.ts'
import { times } from '../support/scale.ts'

const models = emptyFolder()
const chunk = 64
let llm: Llm

beforeAll(async () => {
  llm = await createLlm({ models, local: { contextSize: 4096, parallel: 2, promptCache: '1gb' } })
  await llm.load('tiny')
})
afterAll(() => llm.close())

interface Asked {
  readonly caller: string
  readonly tools?: readonly Tool[]
  readonly seed?: number | undefined
  readonly maxTokens?: number
}

async function ask(
  messages: readonly Message[],
  { caller, tools, seed, maxTokens = 16 }: Asked,
): Promise<Marked & { readonly firstMs: number }> {
  const startedAt = performance.now()
  let firstAt = 0
  const generation = await llm.generate(
    {
      model: 'tiny',
      input: { kind: 'chat', messages, ...(tools && { tools }) },
      maxTokens,
      sampling: seed === undefined ? { temperature: 0 } : { temperature: 1, topK: 0, topP: 1, seed },
    },
    { signal: new AbortController().signal, caller: { id: caller } },
  )
  const marked = await readMarked(
    (async function* () {
      for await (const event of generation) {
        if (event.type === 'text') firstAt ||= performance.now()
        yield event
      }
    })(),
  )
  return { ...marked, firstMs: (firstAt || performance.now()) - startedAt }
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] as number

const count = times(40, 8)

test(`${count} conversations in two places are read from what was kept, and answered as in cold runs`, async () => {
  const subjects = ['Ada', 'a fox', 'the sea']
  const asked = (conversation: number, turn: number): readonly Message[] => [
    message('system', notes(43, 50 * conversation), '5m'),
    message('user', `Write a short story about ${subjects[turn]}.`),
  ]
  const all = subjects.flatMap((_, turn) =>
    Array.from({ length: count }, (_, conversation) => ({
      messages: asked(conversation, turn),
      // All tokens may be drawn: the smallest difference shows.
      seed: turn === 2 ? conversation : undefined,
      caller: 'app',
      turn,
    })),
  )
  const answers: Awaited<ReturnType<typeof ask>>[] = []
  for (const { messages, ...call } of all) answers.push(await ask(messages, call))
  const colds: typeof answers = []
  for (const [at, { messages, seed }] of all.entries())
    colds.push(await ask(messages, { seed, caller: `cold ${at}` }))

  const hits = answers.filter((answer, at) => {
    const first = answers[at % count]
    return at >= count && first && cached(answer)[0] === cached(first)[1]
  })
  expect(answers[0]?.usage.inputTokens).toBeGreaterThan(600)
  expect(hits.length).toBeGreaterThanOrEqual(0.9 * 2 * count)
  expect(colds.filter(({ usage }) => usage.reusedTokens > 0)).toEqual([])
  expect(answers.map(({ text }) => text)).toEqual(colds.map(({ text }) => text))
  expect(new Set(colds.slice(2 * count).map(({ text }) => text)).size).toBeGreaterThan(0.8 * count)
  // Of a model this small the rest of a call takes more than its prompt; see bench/prompt-cache.mjs.
  expect(median(hits.map(({ firstMs }) => firstMs))).toBeLessThan(
    median(colds.map(({ firstMs }) => firstMs)) / 4,
  )
}, 600_000)

test('with a seed answers are those of cold runs, however what they begin with was read, and beside whom', async () => {
  const asked = (index: number, question: string): readonly Message[] => [
    message('system', notes(7 + index, 90 * index), '1h'),
    message('user', notes(2 + (index % 5), index), '5m'),
    message('user', question),
  ]
  const all = Array.from({ length: times(48, 12) }, (_, index) => ({
    messages: asked(index, 'Write a short story about the sea.'),
    seed: index,
  }))
  const texts = (answers: readonly Marked[]): string[] => answers.map(({ text }) => text)
  const colds: Marked[] = []
  for (const [at, { messages, seed }] of all.entries())
    colds.push(await ask(messages, { seed, caller: `seeded cold ${at}` }))

  // More than there are places, without a seed: their pieces share steps.
  await Promise.all(all.map((_, at) => ask(asked(at, 'Hello'), { caller: 'seeded', maxTokens: 2 })))
  const warm: Marked[] = []
  for (const { messages, seed } of all) warm.push(await ask(messages, { seed, caller: 'seeded' }))
  const beside = await Promise.all(all.map(({ messages, seed }) => ask(messages, { seed, caller: 'seeded' })))

  expect(texts(warm)).toEqual(texts(colds))
  expect(texts(beside)).toEqual(texts(colds))
  expect(
    warm.filter(
      (answer, at) => cached(answer)[0] !== (colds[at] && cached(colds[at])[1] + cached(colds[at])[2]),
    ),
  ).toEqual([])
}, 600_000)

test('of an agent’s turns little more is read than what is new in each', async () => {
  const caller = 'agent'
  const tools: Tool[] = ['read', 'write', 'list', 'search'].map((name, at) => ({
    name: `${name}_file`,
    description: `${name} a file of the project. ${notes(3, 20 * at)}`,
    parameters: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
    ...(at === 3 && { cache: '1h' }),
  }))
  const talk: Message[] = [message('system', notes(40, 500), '1h'), message('user', 'Look at all boxes.')]
  /** The breakpoint is on the last part, and no longer where it was. */
  const marked = (messages: readonly Message[]): Message[] =>
    messages.map((one, at) =>
      at === messages.length - 1
        ? { ...one, content: one.content.map((part) => ({ ...part, cache: '5m' })) }
        : one,
    )
  let before = 0
  const evaluated: number[] = []
  const allowed: number[] = []
  for (let turn = 0; turn < 20; turn++) {
    const { usage } = await ask(marked(talk), { caller, tools, maxTokens: 24 })
    const { inputTokens, reusedTokens, cacheReadTokens, cacheWriteTokens } = usage
    expect(cacheReadTokens + cacheWriteTokens['5m'] + cacheWriteTokens['1h']).toBeLessThanOrEqual(inputTokens)
    evaluated.push(inputTokens - reusedTokens)
    allowed.push(1.2 * (inputTokens - before) + chunk)
    if (turn > 0) expect(cacheReadTokens).toBeGreaterThan(before - chunk)
    before = inputTokens
    // Somebody else takes places in between.
    if (turn % 3 === 0)
      for (const other of ['one', 'two']) await ask([message('user', 'Hello')], { caller: other })
    talk.push(
      {
        role: 'assistant',
        content: [
          part(`I look at box ${turn}.`),
          { type: 'tool-call', id: `call_${turn}`, name: 'read_file', arguments: `{"path":"box-${turn}"}` },
        ],
      },
      {
        role: 'tool',
        content: [
          {
            type: 'tool-result',
            id: `call_${turn}`,
            name: 'read_file',
            content: [part(notes(3, 600 + turn))],
          },
        ],
      },
    )
  }

  expect(evaluated[0]).toBeGreaterThan(1_000)
  expect(evaluated.slice(1).filter((tokens, at) => tokens > (allowed[at + 1] as number))).toEqual([])
  expect(evaluated.slice(1).every((tokens) => tokens > 0)).toBe(true)
}, 120_000)
