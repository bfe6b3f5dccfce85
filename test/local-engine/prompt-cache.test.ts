/**
 * The prompt cache of the built-in model: reads and writes at breakpoints, isolation of tenants, lifetimes,
 * and faults of the state files.
 */
import {
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { type Caller, createLlm, type GenerateResult, type Llm } from '@modelmount/core'
import type { CacheLifetime, Message, Part, Tool } from '@modelmount/core/engine'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Clocked, openClocked } from '../support/clocked.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { cached, type Marked, message, notes, part, readMarked } from '../support/marked.ts'
import { until } from '../support/processes.ts'

const models = emptyFolder()
const chunk = 64

interface AskOptions {
  readonly caller?: string | Caller
  readonly tools?: readonly Tool[]
  readonly seed?: number
  readonly maxTokens?: number
}
async function askOf(llm: Llm, messages: readonly Message[], asked: AskOptions = {}): Promise<Marked> {
  const { caller = 'ann', tools, seed, maxTokens = 8 } = asked
  const generation = await llm.generate(
    {
      model: 'tiny',
      input: { kind: 'chat', messages, ...(tools && { tools }) },
      maxTokens,
      sampling: seed === undefined ? { temperature: 0 } : { temperature: 1, topK: 0, topP: 1, seed },
    },
    { signal: new AbortController().signal, caller: typeof caller === 'string' ? { id: caller } : caller },
  )
  return readMarked(generation)
}

describe('a prompt cache with room for all states', () => {
  let llm: Llm
  const ask = (messages: readonly Message[], asked?: AskOptions): Promise<Marked> =>
    askOf(llm, messages, asked)

  beforeAll(async () => {
    llm = await createLlm({ models, local: { contextSize: 4096, parallel: 2 } })
    await llm.load('tiny')
  })
  afterAll(() => llm.close())

  const system = message('system', notes(40, 1), '5m')

  test('the second call reads what the first one wrote, and the usage in each start event is final', async () => {
    const caller = 'reader'
    const first = await ask([system, message('user', 'Hello')], { caller })
    const second = await ask([system, message('user', 'Who are you?')], { caller })
    const cold = await ask([system, message('user', 'Who are you?')], { caller: 'somebody' })

    const [, written] = cached(first)
    expect(written).toBeGreaterThan(500)
    expect(written).toBeLessThan(first.usage.inputTokens)
    expect(cached(first)).toEqual([0, written, 0])
    expect(first.usage.reusedTokens).toBe(0)
    expect(cached(second)).toEqual([written, 0, 0])
    expect(second.usage.reusedTokens).toBeGreaterThanOrEqual(written)
    expect(second.text).toBe(cold.text)
    for (const { plan, usage } of [first, second, cold]) expect(usage).toMatchObject(plan)
  })

  test('another tenant evaluates the whole prompt again, and callers of one tenant share the cache', async () => {
    const ask5m = (caller: Caller) => ask([system, message('user', 'Hello')], { caller })
    const first = await ask5m({ id: 'eve', tenant: 'team' })
    const other = await ask5m({ id: 'team' + 'mate' })
    const shared = await ask5m({ id: 'mallory', tenant: 'team' })

    expect(cached(other)).toEqual(cached(first))
    expect(other.usage.reusedTokens).toBe(0)
    expect(other.promptMs).toBeGreaterThan(first.promptMs / 2)
    expect(cached(shared)).toEqual([cached(first)[1], 0, 0])
    expect(shared.promptMs).toBeLessThan(first.promptMs / 2)
  })

  test('a tenant with a similar name reads nothing of another tenant’s cache', async () => {
    const asked = [message('system', notes(20, 50), '5m'), message('user', 'Hello')]
    await ask(asked, { caller: 'tenant' })

    for (const caller of ['t', 'tenant ', ' tenant', 'tenant\0', 'Tenant'])
      expect((await ask(asked, { caller })).usage.cacheReadTokens).toBe(0)
  })

  test('without breakpoints, reused tokens are not reported as cache reads or writes', async () => {
    const asked = [message('system', notes(20, 100)), message('user', 'Hello')]
    await ask([message('system', notes(20, 100), '5m'), message('user', 'Hello')])
    const { usage } = await ask(asked)

    expect(cached({ usage })).toEqual([0, 0, 0])
    expect(usage.reusedTokens).toBeGreaterThan(200)
  })

  test('tokens up to a 1h breakpoint are cached for an hour, and the tokens up to a later 5m breakpoint for five minutes', async () => {
    const caller = 'two'
    const asked = (question: string) => [
      message('system', notes(20, 200), '1h'),
      message('user', notes(20, 300), '5m'),
      message('assistant', 'Yes.'),
      message('user', question),
    ]
    const first = await ask(asked('Hello'), { caller })
    const second = await ask(asked('Who are you?'), { caller })
    const changed = await ask(
      [message('system', notes(20, 200), '1h'), message('user', notes(20, 301), '5m')],
      { caller },
    )

    const [, five, hour] = cached(first)
    expect(five).toBeGreaterThan(200)
    expect(hour).toBeGreaterThan(200)
    expect(cached(first)).toEqual([0, five, hour])
    expect(cached(second)).toEqual([five + hour, 0, 0])
    const [read, again, none] = cached(changed)
    expect([read, none]).toEqual([hour, 0])
    expect(again).toBeGreaterThan(200)
  })

  test('later calls can read up to each of four breakpoints', async () => {
    const caller = 'four'
    const blocks = [notes(12, 400), notes(12, 500), notes(12, 600), notes(12, 700)]
    const asked = (texts: readonly string[]): Message[] =>
      texts.map((text, at) => message(at === 0 ? 'system' : 'user', text, at < 2 ? '1h' : '5m'))
    const first = await ask(asked(blocks), { caller })
    const [, five, hour] = cached(first)
    // Each call differs from the first one from the block `changed` on.
    const reads: (readonly [number, number, number])[] = []
    for (const changed of [3, 2, 1, 0])
      reads.push(
        cached(
          await ask(asked(blocks.map((text, at) => (at < changed ? text : `Else. ${text}`))), {
            caller: { id: 'x', tenant: caller },
          }),
        ),
      )

    expect(five).toBeGreaterThan(300)
    expect(hour).toBeGreaterThan(300)
    expect(five + hour).toBeGreaterThan(first.usage.inputTokens - 20)
    const lengths = reads.map(([read]) => read)
    expect(lengths).toEqual(lengths.toSorted((a, b) => b - a))
    expect(new Set(lengths).size).toBe(4)
    expect(lengths[1]).toBe(hour)
    expect(lengths[3]).toBe(0)
    for (const [read, again5m, again1h] of reads) expect(read + again5m + again1h).toBeGreaterThan(600)
    // The blocks 0 and 1 have 1h breakpoints. A call that changes one of them writes for an hour again.
    expect(reads.map(([, , again1h]) => again1h > 0)).toEqual([false, false, true, true])
  })

  const tools = (description: string, cache?: '5m' | '1h'): Tool[] => [
    {
      name: 'weather',
      description,
      parameters: { type: 'object', properties: { city: { type: 'string' } } },
    },
    { name: 'clock', description: notes(10, 7), parameters: { type: 'object' }, ...(cache && { cache }) },
  ]

  test('a call reads up to a breakpoint on a tool if only its messages differ', async () => {
    const asked = { caller: 'tools', tools: tools('Tells the weather.', '1h') }
    const first = await ask([message('user', 'Hello')], asked)
    const second = await ask([message('user', 'How is the weather?')], asked)

    const [, , written] = cached(first)
    expect(written).toBeGreaterThan(150)
    expect(cached(first)).toEqual([0, 0, written])
    expect(cached(second)).toEqual([written, 0, 0])
  })

  test('a call with a changed tool description reads nothing and writes everything again', async () => {
    const caller = 'described'
    const asked = [message('system', notes(20, 800), '5m'), message('user', 'Hello')]
    const first = await ask(asked, { caller, tools: tools('Tells the weather.') })
    const same = await ask(asked, { caller, tools: tools('Tells the weather.') })
    const other = await ask(asked, { caller, tools: tools('Knows the weather.') })

    const [, written] = cached(first)
    expect(cached(same)).toEqual([written, 0, 0])
    const [read, again] = cached(other)
    expect(read).toBe(0)
    expect(again).toBeGreaterThan(500)
    expect(other.usage.inputTokens - again).toBe(first.usage.inputTokens - (written ?? 0))
  })

  test('breakpoints on tool calls and on tool results are written and read', async () => {
    const caller = 'called'
    const call: Part = { type: 'tool-call', id: 'a', name: 'weather', arguments: '{"city":"Rome"}' }
    const result: Part = { type: 'tool-result', id: 'a', name: 'weather', content: [part(notes(10, 900))] }
    const start = [message('system', notes(10, 850)), message('user', 'How is the weather in Rome?')]
    const turn = (role: string, ...content: Part[]): Message => ({ role, content })
    const asked = { caller, tools: tools('Tells the weather.') }
    const atCall = await ask(
      [...start, turn('assistant', { ...call, cache: '5m' }), turn('tool', result)],
      asked,
    )
    const atResult = await ask(
      [...start, turn('assistant', call), turn('tool', { ...result, cache: '5m' })],
      asked,
    )
    const next = await ask(
      [
        ...start,
        turn('assistant', call),
        turn('tool', result),
        message('assistant', 'It is warm.'),
        message('user', 'Thank you', '5m'),
      ],
      asked,
    )

    const [, toCall] = cached(atCall)
    const [read, toResult] = cached(atResult)
    expect(toCall).toBeGreaterThan(300)
    expect(read).toBe(toCall)
    expect(toResult).toBeGreaterThan(100)
    expect(cached(next)[0]).toBe(toCall + toResult)
  })

  test('a breakpoint inside a message is read if only the text after it differs', async () => {
    const caller = 'middle'
    const asked = (end: string): Message[] => [
      { role: 'user', content: [part(notes(20, 1_000), '5m'), part(end)] },
    ]
    const first = await ask(asked(' What is in box 7000?'), { caller })
    const second = await ask(asked(' And which note is the last?'), { caller })
    const other = await ask([{ role: 'user', content: [part(`Else. ${notes(20, 1_000)}`, '5m')] }], {
      caller,
    })

    const [, written] = cached(first)
    expect(written).toBeGreaterThan(200)
    expect(cached(second)).toEqual([written, 0, 0])
    expect(cached(other)[0]).toBe(0)
  })

  test('with the breakpoint on the last message, each turn of a conversation reads the prompt of the previous turn', async () => {
    const caller = 'talk'
    const talk: Message[] = [message('system', notes(10, 1_100))]
    const turns: Marked[] = []
    for (const subject of ['Ada', 'a fox', 'the sea', 'a robot', 'rain']) {
      const question = `Tell me about ${subject}. ${notes(2, 1_200)}`
      turns.push(await ask([...talk, message('user', question, '5m')], { caller }))
      talk.push(message('user', question), message('assistant', turns.at(-1)?.text ?? ''))
    }

    const ends = turns.map((turn) => cached(turn).reduce((sum, tokens) => sum + tokens))
    expect(turns.map((turn) => cached(turn)[0])).toEqual([0, ...ends.slice(0, -1)])
    // Only the tokens that the template appends to the last message are not cached.
    expect(turns.every(({ usage }, at) => usage.inputTokens - (ends[at] ?? 0) < 16)).toBe(true)
  })

  test('a call reads up to a breakpoint that is followed by 25 new blocks', async () => {
    const caller = 'agent'
    const start = [message('system', notes(10, 1_300)), message('user', 'Look at all boxes.')]
    const first = await ask([...start, message('assistant', 'I look.', '5m')], { caller })
    const blocks = Array.from({ length: 25 }, (_, at) => part(`Box ${at} is empty. `))
    const next = await ask(
      [
        ...start,
        message('assistant', 'I look.'),
        { role: 'user', content: [...blocks, part('Go on.', '5m')] },
      ],
      { caller },
    )

    const [, written] = cached(first)
    expect(written).toBeGreaterThan(100)
    expect(cached(next)[0]).toBe(written)
    expect(cached(next)[1]).toBeGreaterThan(150)
  })

  test('a breakpoint inside the first chunk of 64 tokens is neither cached nor reported', async () => {
    const asked = [message('system', 'You are kind.', '5m'), message('user', notes(10, 1_400))]
    const first = await ask(asked, { caller: 'short' })
    const second = await ask(asked, { caller: 'short' })

    expect([cached(first), cached(second)]).toEqual([
      [0, 0, 0],
      [0, 0, 0],
    ])
    expect(second.usage.reusedTokens).toBeGreaterThan(chunk)
  })

  test('a call with maxTokens 0 caches its prompt for the next call', async () => {
    const asked = [message('system', notes(20, 1_500), '5m'), message('user', 'Hello')]
    const warming = await ask(asked, { caller: 'early', maxTokens: 0 })
    const next = await ask(asked, { caller: 'early' })

    expect(warming.text).toBe('')
    expect(warming.usage.outputTokens).toBe(0)
    expect(cached(next)).toEqual([cached(warming)[1], 0, 0])
    expect(cached(next)[0]).toBeGreaterThan(200)
  })

  test('two concurrent calls with the same prompt each report their actual cache reads and writes', async () => {
    const asked = [message('system', notes(30, 1_600), '5m'), message('user', 'Hello')]
    const answers = await Promise.all([ask(asked, { caller: 'both' }), ask(asked, { caller: 'both' })])
    const next = await ask(asked, { caller: 'both' })

    const [, written] = cached(next)[0] > 0 ? [0, cached(next)[0]] : [0, -1]
    for (const answer of answers) {
      const [read, five, hour] = cached(answer)
      expect(read + five).toBe(written)
      expect(hour).toBe(0)
      expect(read).toBeLessThanOrEqual(answer.usage.reusedTokens)
    }
    expect(answers[1]?.text).toBe(answers[0]?.text)
  })

  describe('raw prompts without breakpoints', () => {
    /** About 1,500 tokens, which differ for each number. */
    const book = (number: number): string =>
      Array.from({ length: 71 }, (_, line) => `Book ${number}, note ${line}: see box ${line * 7}.`).join('\n')

    async function askRaw(
      text: string,
      caller: string,
      seed?: number,
    ): Promise<Pick<GenerateResult, 'usage' | 'timings'>> {
      const generation = await llm.generate(
        {
          model: 'tiny',
          input: { kind: 'text', prompt: [text] },
          maxTokens: 1,
          sampling: { temperature: 1, ...(seed !== undefined && { seed }) },
        },
        { signal: new AbortController().signal, caller: { id: caller } },
      )
      for await (const event of generation) if (event.type === 'end') return event
      throw new Error('The answer did not end.')
    }

    test('without a seed, only new tokens are evaluated', async () => {
      const cold = await askRaw(`${book(1)}\nWhere is box 7?`, 'raw')
      const warm = await askRaw(`${book(1)}\nWhere is box 14?`, 'raw')
      const again = await askRaw(`${book(1)}\nWhere is box 14?`, 'raw')

      expect(cold.usage.reusedTokens).toBe(0)
      expect(cold.usage.inputTokens).toBeGreaterThan(1_400)
      expect(warm.usage.inputTokens - warm.usage.reusedTokens).toBeLessThan(20)
      expect(again.usage.inputTokens - again.usage.reusedTokens).toBe(1)
      expect(warm.timings.promptMs).toBeLessThan(cold.timings.promptMs / 2)
    })

    test('with a seed, the number of reused tokens is a multiple of 64', async () => {
      const cold = await askRaw(`${book(2)}\nWhere is box 7?`, 'raw', 1)
      const warm = await askRaw(`${book(2)}\nWhere is box 14?`, 'raw', 1)
      const { inputTokens, reusedTokens } = warm.usage

      expect(reusedTokens % 64).toBe(0)
      expect(inputTokens - reusedTokens).toBeLessThan(64 + 20)
      expect(warm.timings.promptMs).toBeLessThan(cold.timings.promptMs / 2)
    })

    test('a caller reuses nothing of another caller’s prompt, and its latency does not reveal that prompt', async () => {
      const cold = await askRaw(book(3), 'raw')
      const other = await askRaw(book(3), 'other raw')
      const own = await askRaw(book(3), 'raw')

      expect(other.usage.reusedTokens).toBe(0)
      expect(other.timings.promptMs).toBeGreaterThan(cold.timings.promptMs / 2)
      expect(own.usage.reusedTokens).toBe(own.usage.inputTokens - 1)
    })
  })
})

const ramDisk = '/dev/shm'

function folderOf(llm: Llm): string | undefined {
  const [{ processId } = {}] = llm.loaded()
  const name = filesIn(ramDisk).find((one) => one.startsWith(`modelmount-${processId}-`))
  return name && join(ramDisk, name)
}
const filesIn = (folder: string): string[] =>
  statSync(folder, { throwIfNoEntry: false })?.isDirectory() ? readdirSync(folder) : []
const bytesIn = (folder: string): number =>
  filesIn(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)

describe('a model with one slot, which restores KV states from files', () => {
  let llm: Llm
  let folder: string
  const warnings: string[] = []
  const ask = (caller: string, messages: readonly Message[]): Promise<Marked> =>
    askOf(llm, messages, { caller })
  const asked = (first: number, question = 'Hello'): Message[] => [
    message('system', notes(20, first), '5m'),
    message('user', question),
  ]

  beforeAll(async () => {
    const logger = { warn: (_: object, message: string) => warnings.push(message), error: () => {} }
    llm = await createLlm({ models, logger, local: { contextSize: 2048, parallel: 1 } })
    await llm.load('tiny')
  })
  afterAll(() => llm.close())
  beforeEach(({ skip }) => {
    folder = folderOf(llm) ?? skip('The RAM disk has no room here.')
  })

  /** Makes a call, and then another one that takes its slot. Returns the state files that they wrote. */
  async function write(
    caller: string,
    first: number,
  ): Promise<Marked & { readonly files: readonly string[] }> {
    const before = filesIn(folder)
    const marked = await ask(caller, asked(first))
    await ask('somebody', [message('user', 'Hello')])
    const made = filesIn(folder).filter((name) => !before.includes(name))
    return { ...marked, files: made.map((name) => join(folder, name)) }
  }

  test('a restored state takes less than half the prompt time, and gives the same answer', async () => {
    const first = await write('ann', 1)
    const warm = await ask('ann', asked(1, 'Who are you?'))
    const cold = await ask('cold', asked(1, 'Who are you?'))

    expect(cached(warm)).toEqual([cached(first)[1], 0, 0])
    expect(warm.text).toBe(cold.text)
    expect(warm.promptMs).toBeLessThan(cold.promptMs / 2)
  })

  test('a state that was cached at a breakpoint near the end of a prompt is not written again when its slot is taken', async () => {
    const { files } = await write('twice', 1)
    await ask('twice', asked(1))

    expect((await write('somebody else', 1)).files).toHaveLength(1)
    expect(files).toHaveLength(1)
  })

  test.each([
    ['damaged', (file: string) => writeFileSync(file, readFileSync(file).fill(1, 4_000, 5_000))],
    ['cut off', (file: string) => truncateSync(file, statSync(file).size - 1)],
    ['emptied', (file: string) => truncateSync(file, 0)],
    ['gone', (file: string) => rmSync(file)],
  ])('if the state file is %s, the prompt is evaluated and cached again', async (how, harm) => {
    const first = await write(how, 1)
    for (const file of first.files) harm(file)

    const again = await write(how, 1)
    const warm = await ask(how, asked(1))

    expect(first.files).toHaveLength(1)
    expect(again).toMatchObject({ text: first.text, usage: first.usage })
    expect(again.plan).toEqual(first.plan)
    expect(cached(warm)).toEqual([cached(first)[1], 0, 0])
    expect(folderOf(llm)).toBe(folder)
  })

  test('swapped state files of two tenants are read for neither of them', async () => {
    const first = await write('swapped', 1)
    const other = await write('with', 100)
    const [[one = ''], [two = '']] = [first.files, other.files]
    renameSync(one, `${one}-`)
    renameSync(two, one)
    renameSync(`${one}-`, two)

    expect(await ask('swapped', asked(1))).toMatchObject({ text: first.text, usage: first.usage })
    expect(await ask('with', asked(100))).toMatchObject({ text: other.text, usage: other.usage })
  })

  test('on a full disk the final usage reports no cache write, and with room again the next call writes', async () => {
    const names = Array.from({ length: 1_000 }, (_, number) => join(folder, String(number)))
    const unused = names.filter((name) => !existsSync(name))
    for (const name of unused) symlinkSync('/dev/full', name)
    const full = await write('full', 1)
    const paused = await write('full', 1)
    for (const name of unused) rmSync(name, { force: true })
    // After a failed write, nothing is written for ten seconds.
    const again = await vi.waitFor(
      async () => {
        const again = await write('full', 1)
        expect(again.plan.cacheWriteTokens['5m']).toBeGreaterThan(0)
        return again
      },
      { timeout: 20_000, interval: 500 },
    )
    const warm = await ask('full', asked(1))

    expect(full.plan.cacheWriteTokens['5m']).toBeGreaterThan(200)
    expect(cached(full)).toEqual([0, 0, 0])
    expect(warnings).toEqual([
      expect.stringMatching(
        /^The prompt cache of the model "tiny:latest" could not write to .*, where \d+ MB are free\./,
      ),
    ])
    expect(paused.plan.cacheWriteTokens['5m']).toBe(0)
    expect(cached(again)).toEqual([0, full.plan.cacheWriteTokens['5m'], 0])
    expect(cached(warm)).toEqual([cached(again)[1], 0, 0])
  })

  test('a deleted state folder is created again, and with a file in its place nothing is cached or reported', async () => {
    const first = await write('folder', 1)
    rmSync(folder, { recursive: true })
    const gone = await write('folder', 1)
    const again = await write('folder', 1)
    rmSync(folder, { recursive: true })
    writeFileSync(folder, '')
    const taken = await write('folder', 1)

    for (const { plan, text, usage } of [gone, taken]) {
      expect(plan).toEqual(first.plan)
      expect(usage.reusedTokens).toBe(0)
      expect(text).toBe(first.text)
    }
    expect(cached(gone)).toEqual(cached(first))
    expect(cached(again)).toEqual([cached(first)[1], 0, 0])
    expect(cached(taken)).toEqual([0, 0, 0])
    expect(llm.loaded()).toHaveLength(1)
  })
})

describe('the state files of a model process', () => {
  let contextSize = 1024
  const asked = [message('system', notes(20, 1), '5m'), message('user', 'Hello')]
  /** Each app has another context size, and so its own model process. */
  const open = (): Promise<Llm> => createLlm({ models, local: { contextSize: ++contextSize, parallel: 1 } })

  test('are deleted by the next process after a kill, and the next call evaluates its whole prompt', async ({
    skip,
  }) => {
    const llm = await open()
    const first = await askOf(llm, asked)
    const folder = folderOf(llm) ?? skip('The RAM disk has no room here.')
    const had = filesIn(folder)
    const [{ processId = 0 } = {}] = llm.loaded()
    process.kill(processId, 'SIGKILL')
    await until(() => llm.loaded()[0]?.processId !== processId, 5_000)

    const cold = await askOf(llm, asked)

    expect(had.length).toBeGreaterThan(0)
    expect(cold).toMatchObject({ text: first.text, usage: first.usage })
    expect(existsSync(folder)).toBe(false)
    expect(folderOf(llm)).not.toBe(folder)
    await llm.close()
  })

  test('are deleted after the last app has closed', async ({ skip }) => {
    const llm = await open()
    await askOf(llm, asked)
    const folder = folderOf(llm) ?? skip('The RAM disk has no room here.')
    const had = filesIn(folder)
    await llm.close()

    await until(() => !existsSync(folder), 15_000)
    expect(had.length).toBeGreaterThan(0)
  })
})

describe('a prompt cache with little room', () => {
  const asked = (first: number): Message[] => [
    message('system', notes(20, first), '5m'),
    message('user', 'Hello'),
  ]

  async function withRoom<T>(promptCache: number, run: (llm: Llm) => Promise<T>): Promise<T> {
    const llm = await createLlm({ models, local: { contextSize: 2048, parallel: 1, promptCache } })
    try {
      return await run(llm)
    } finally {
      await llm.close()
    }
  }

  test('an evicted state is written again, and never reported as read', async ({ skip }) => {
    const sizeBytes = await withRoom(2 ** 28, async (llm) => {
      await askOf(llm, asked(1))
      const folder = folderOf(llm)
      return folder === undefined ? skip('The RAM disk has no room here.') : bytesIn(folder)
    })
    const answers = await withRoom(2.5 * sizeBytes, async (llm) => {
      const marked: Marked[] = []
      const sizes: number[] = []
      for (const first of [1, 100, 1, 200, 1, 100]) {
        marked.push(await askOf(llm, asked(first)))
        sizes.push(bytesIn(folderOf(llm) ?? ''))
      }
      expect(Math.max(...sizes)).toBeLessThanOrEqual(2.5 * sizeBytes)
      return marked
    })

    const isRead = answers.map((answer) => cached(answer)[0] > 0)
    const isWritten = answers.map((answer) => cached(answer)[1] > 0)
    // The least recently used state is evicted.
    expect(isRead).toEqual([false, false, true, false, true, false])
    expect(isWritten).toEqual(isRead.map((read) => !read))
  })

  test.each([0, 1_000])(
    'with %i bytes nothing is cached, and the final usage reports no cache tokens',
    async (promptCache) => {
      await withRoom(promptCache, async (llm) => {
        const first = await askOf(llm, asked(1))
        const second = await askOf(llm, asked(1))

        expect([cached(first), cached(second)]).toEqual([
          [0, 0, 0],
          [0, 0, 0],
        ])
        expect(second.plan).toMatchObject({ cacheReadTokens: 0, cacheWriteTokens: { '5m': 0, '1h': 0 } })
        expect(second.text).toBe(first.text)
        expect(second.usage.reusedTokens).toBeGreaterThan(200)
        expect(bytesIn(folderOf(llm) ?? '')).toBe(0)
      })
    },
  )
})

describe('cache lifetimes, on a clock that the test sets', () => {
  let model: Clocked

  beforeAll(async () => {
    model = await openClocked({ contextSize: 1024, parallel: 2 })
  })
  afterAll(() => model.close())
  beforeEach(() => {
    model.restart()
    model.stepMs = 0
  })

  const minute = 60_000
  const wait = (minutes: number): void => {
    model.now += minutes * minute
  }

  /** Also checks the reported usage against the number of evaluated tokens. */
  async function ask(
    lifetimes: readonly CacheLifetime[],
    question = 'Hello',
    tenant?: string,
  ): Promise<Marked> {
    const marks = lifetimes.map((lifetime, at) =>
      message(at === 0 ? 'system' : 'user', notes(15, 100 * at), lifetime),
    )
    model.evaluated = 0
    const messages = [...marks, message('user', question)]
    const marked = await model.ask({ input: { kind: 'chat', messages }, maxTokens: 1 }, tenant)
    const { inputTokens, reusedTokens } = marked.usage
    expect(model.evaluated).toBe(inputTokens - reusedTokens)
    return marked
  }
  const isRead = async (...asked: Parameters<typeof ask>): Promise<boolean> =>
    cached(await ask(...asked))[0] > 0

  test('a state that was not used for more than five minutes is written again', async () => {
    const first = await ask(['5m'])
    wait(5)
    const inTime = await ask(['5m'])
    wait(5.01)
    const late = await ask(['5m'])

    expect(cached(first)[1]).toBeGreaterThan(150)
    expect(cached(inTime)).toEqual([cached(first)[1], 0, 0])
    expect(cached(late)).toEqual(cached(first))
  })

  test('each read restarts the five minutes', async () => {
    await ask(['5m'])
    const reads: boolean[] = []
    for (const minutes of [4, 4, 4.9, 4, 5.1]) {
      wait(minutes)
      reads.push(await isRead(['5m'], `What is box ${minutes}?`))
    }

    expect(reads).toEqual([true, true, true, true, false])
  })

  test('a state with the lifetime 1h can be read for an hour after each use', async () => {
    await ask(['1h'])
    wait(59)
    const inTime = await isRead(['1h'])
    wait(60)
    const again = await isRead(['1h'])
    wait(60.1)

    expect([inTime, again, await isRead(['1h'])]).toEqual([true, true, false])
  })

  test('when a 5m breakpoint has expired, the 1h breakpoint before it is still read', async () => {
    const first = await ask(['1h', '5m'])
    wait(6)
    const later = await ask(['1h', '5m'])

    const [, five, hour] = cached(first)
    expect(five).toBeGreaterThan(150)
    expect(hour).toBeGreaterThan(150)
    expect(cached(later)).toEqual([hour, five, 0])
  })

  test('a 1h breakpoint extends the lifetime of a state that was written for 5m', async () => {
    await ask(['5m'])
    wait(4)
    const asked = await isRead(['1h'])
    wait(50)

    expect([asked, await isRead(['1h'])]).toEqual([true, true])
  })

  test('a 5m breakpoint does not shorten the lifetime of a state that was written for 1h', async () => {
    await ask(['1h'])
    wait(10)
    const asked = await isRead(['5m'])
    wait(50)

    expect([asked, await isRead(['5m'])]).toEqual([true, true])
  })

  test('a lifetime begins when the prompt has been evaluated, not when the call arrives', async () => {
    /** Returns the time at which the call arrived. */
    const readSlowly = async (): Promise<number> => {
      model.stepMs = minute
      const comesAt = model.now
      await ask(['5m'])
      model.stepMs = 0
      expect(model.now - comesAt).toBeGreaterThanOrEqual(2 * minute)
      return comesAt
    }
    model.now = (await readSlowly()) + 5.1 * minute
    expect(await isRead(['5m'])).toBe(true)
    model.restart()

    await readSlowly()
    wait(5.1)

    expect(await isRead(['5m'])).toBe(false)
  })

  test('expired states are deleted when a new state is written', async () => {
    await ask(['5m'], 'Hello', 'ann')
    const sizeBytes = model.bytes()
    await ask(['5m'], 'Hello', 'ben')
    const both = model.bytes()
    wait(5.1)
    await ask(['5m'], 'Hello', 'eve')

    expect(both).toBe(2 * sizeBytes)
    expect(model.bytes()).toBe(sizeBytes)
  })
})
