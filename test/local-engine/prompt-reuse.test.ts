/**
 * How much of a prompt is reused by models that can truncate their KV cache, by recurrent models and by
 * models with a sliding window. Answers have to equal those of cold runs.
 */
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { copyFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { createLlm, type GenerateResult, type Llm } from '@modelmount/core'
import type { Message, Tool } from '@modelmount/core/engine'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { cached, type Marked, message, notes, part, readMarked } from '../support/marked.ts'
import { noiseModel, recurrentModel, slidingWindowModel } from '../support/models.ts'
import { until } from '../support/processes.ts'
import { times } from '../support/scale.ts'

const emptyModels = emptyFolder()
/** The window of the sliding-window model, in tokens. */
const window = 128

describe.each([
  ['tiny-mamba.f16', recurrentModel, Number.POSITIVE_INFINITY],
  ['tiny-gemma3-swa.f16', slidingWindowModel, window],
])('the model %s', (name, models, mostSeeded) => {
  let llm: Llm

  beforeAll(async () => {
    llm = await createLlm({ models, local: { contextSize: 2048, parallel: 3 } })
    await llm.load(name)
  })
  afterAll(() => llm.close())

  describe('with breakpoints', () => {
    interface AskOptions {
      readonly caller: string
      readonly question?: string
      readonly seed?: number
    }
    /** Asks with a system message of `count` notes and a question, each with a breakpoint. */
    async function ask(count: number, { caller, question = 'Hello', seed }: AskOptions): Promise<Marked> {
      const messages = [message('system', notes(count, count), '1h'), message('user', question, '5m')]
      const generation = await llm.generate(
        {
          model: name,
          input: { kind: 'chat', messages },
          maxTokens: 16,
          sampling: seed === undefined ? { temperature: 0 } : { temperature: 1, topK: 0, topP: 1, seed },
        },
        { signal: new AbortController().signal, caller: { id: caller } },
      )
      return readMarked(generation)
    }
    /** Asks twice with the same system message. Returns the second answer. */
    async function warm(count: number, caller: string, seed?: number): Promise<Marked> {
      await ask(count, { caller, ...(seed !== undefined && { seed }) })
      return ask(count, { caller, question: 'Who are you?', ...(seed !== undefined && { seed }) })
    }
    const occupySlots = (): Promise<unknown> =>
      Promise.all(['one', 'other', 'third'].map((caller) => ask(12, { caller, question: caller })))

    const counts = Array.from({ length: times(26, 5) }, (_, index) => 11 + 5 * index)

    test('answers and their cache usage are the same warm and cold, from a slot and from a file', async () => {
      for (const count of counts) {
        const first = await ask(count, { caller: `warm ${count}` })
        const second = await ask(count, { caller: `warm ${count}`, question: 'Who are you?' })
        await occupySlots()
        const third = await ask(count, { caller: `warm ${count}`, question: 'Who is she?' })
        const [coldSecond, coldThird] = [
          await ask(count, { caller: `second ${count}`, question: 'Who are you?' }),
          await ask(count, { caller: `third ${count}`, question: 'Who is she?' }),
        ]

        const [, , hour] = cached(first)
        expect(hour).toBeGreaterThan(5 * count)
        for (const again of [second, third]) {
          expect(cached(again)[0]).toBe(hour)
          // The state that is cached near the end of a prompt may be a little longer.
          expect(again.usage.reusedTokens).toBeGreaterThanOrEqual(hour)
        }
        for (const cold of [first, coldSecond, coldThird]) {
          expect(cached(cold)[0]).toBe(0)
          expect(cold.usage.reusedTokens).toBe(0)
          expect(cached(cold)[2]).toBe(hour)
        }
        expect(second.text).toBe(coldSecond.text)
        expect(third.text).toBe(coldThird.text)
      }
    }, 120_000)

    test('answers with a seed are the same warm and cold', async () => {
      const texts: string[] = []
      let read = 0
      for (const count of counts) {
        const first = await warm(count, `seeded ${count}`, count)
        await occupySlots()
        const second = await ask(count, { caller: `seeded ${count}`, question: 'Who are you?', seed: count })
        const cold = await ask(count, { caller: `cold ${count}`, question: 'Who are you?', seed: count })

        expect([first.text, second.text]).toEqual([cold.text, cold.text])
        for (const { plan, usage } of [first, second, cold]) {
          expect(usage).toMatchObject(plan)
          expect(usage.cacheReadTokens).toBeLessThanOrEqual(usage.reusedTokens)
        }
        texts.push(cold.text)
        read += cached(first)[0] + cached(second)[0]
      }

      expect(new Set(texts).size).toBeGreaterThan(counts.length / 2)
      expect(read).toBeGreaterThan(0)
    }, 120_000)
  })

  describe('without breakpoints', () => {
    interface AskOptions {
      readonly seed?: number
      readonly caller?: string
      readonly maxTokens?: number
    }
    async function ask(
      prompt: string,
      { seed, caller = 'ann', maxTokens = 24 }: AskOptions = {},
    ): Promise<Pick<GenerateResult, 'text' | 'usage'>> {
      let text = ''
      const generation = await llm.generate(
        {
          model: name,
          input: { kind: 'text', prompt: [prompt] },
          maxTokens,
          sampling: seed === undefined ? { temperature: 0 } : { temperature: 1, topK: 0, topP: 1, seed },
        },
        { signal: new AbortController().signal, caller: { id: caller } },
      )
      for await (const event of generation) {
        if (event.type === 'text') text += event.text
        if (event.type === 'end') return { text, usage: event.usage }
      }
      throw new Error('The answer did not end.')
    }

    test('a repeated prompt, and one that continues it, reuse all but the last 80 tokens', async () => {
      const cold = await ask(book(1, 300))
      const again = await ask(book(1, 300))
      const next = await ask(`${book(1, 300)} And then?`)

      expect(cold.usage.reusedTokens).toBe(0)
      expect(again.usage.reusedTokens).toBeGreaterThan(cold.usage.inputTokens - 80)
      expect(again.usage.reusedTokens).toBeLessThan(cold.usage.inputTokens)
      expect(next.usage.reusedTokens).toBeGreaterThanOrEqual(again.usage.reusedTokens)
      expect(again.text).toBe(cold.text)
      expect(next.text).toBe((await ask(`${book(1, 300)} And then?`, { caller: 'fresh' })).text)
    })

    test('a repeated prompt reuses all but the last 80 tokens after other prompts have used all slots', async () => {
      const cold = await ask(book(2, 300))
      for (const chapter of [3, 4, 5, 6]) await ask(book(chapter, 300), { maxTokens: 2 })

      const again = await ask(book(2, 300))

      expect(again.usage.reusedTokens).toBeGreaterThan(cold.usage.inputTokens - 80)
      expect(again.text).toBe(cold.text)
    })

    test('a turn that omits the earlier reasoning reuses the tokens before that reasoning', async () => {
      const turn = book(7, 300)
      const { usage } = await ask(`${turn} <think>`)

      const next = await ask(`${turn} So it is. What else?`)

      expect(next.usage.reusedTokens).toBeGreaterThan(usage.inputTokens - 80)
    })

    test('a caller reuses nothing of another caller’s prompt', async () => {
      await ask(book(8, 300), { caller: 'ann' })

      expect((await ask(book(8, 300), { caller: 'ben' })).usage.reusedTokens).toBe(0)
    })

    test('answers with a seed are the same warm and cold, alone and in parallel', async () => {
      const lengths = [30, 40, 50, 60, 90, 120, 150, 170, 190, 210]
      const prompts = lengths.map((length, index) => book(20 + index, length))
      const run = (caller: string, seed: number) => ask(prompts[seed] ?? '', { seed, caller })
      const cold: Pick<GenerateResult, 'text' | 'usage'>[] = []
      for (const seed of prompts.keys()) cold.push(await run(`cold ${seed}`, seed))
      for (const prompt of prompts) await ask(prompt, { caller: 'warm' })

      const warm: typeof cold = []
      for (const seed of prompts.keys()) warm.push(await run('warm', seed))
      const beside = await Promise.all(prompts.map((_, seed) => run('warm', seed)))

      expect(warm.map(({ text }) => text)).toEqual(cold.map(({ text }) => text))
      expect(beside.map(({ text }) => text)).toEqual(cold.map(({ text }) => text))
      const hits = warm.filter(({ usage }) => usage.reusedTokens > 0)
      expect(hits.length).toBeGreaterThan(2)
      expect(hits.every(({ usage }) => usage.reusedTokens <= mostSeeded)).toBe(true)
    }, 60_000)

    test('damaged or deleted state files change neither the answer nor the usage', async ({ skip }) => {
      const cold = await ask(book(9, 300), { caller: 'eve' })
      const [{ processId } = {}] = llm.loaded()
      const folder = folderOf(processId)
      if (folder === undefined) return skip('The RAM disk has no room here.')
      for (const name of readdirSync(folder)) writeFileSync(join(folder, name), 'nonsense')
      const damaged = await ask(book(9, 300), { caller: 'eve' })
      rmSync(folder, { recursive: true })
      const gone = await ask(book(9, 300), { caller: 'eve' })

      expect(damaged).toEqual(cold)
      expect(gone).toEqual(cold)
      expect(llm.loaded()[0]?.processId).toBe(processId)
    })

    test('no state files remain after close()', async ({ skip }) => {
      const other = await createLlm({ models })
      await other.load(name)
      const [{ processId } = {}] = other.loaded()
      const had = folderOf(processId)
      await other.close()

      if (had === undefined) return skip('The RAM disk has no room here.')
      await until(() => !existsSync(had), 10_000)
    })
  })
})

const ramDisk = '/dev/shm'

function folderOf(processId: number | undefined): string | undefined {
  if (!existsSync(ramDisk)) return undefined
  const name = readdirSync(ramDisk).find((one) => one.startsWith(`modelmount-${processId}-`))
  return name && join(ramDisk, name)
}

/** A prompt with slightly more tokens than `words`. */
const book = (chapter: number, words: number): string =>
  `Chapter ${chapter}. ${Array.from({ length: words }, (_, word) => `word${(chapter * 7 + word) % 13}`).join(' ')}`

describe('many conversations in two slots', () => {
  const chunk = 64
  let llm: Llm

  beforeAll(async () => {
    llm = await createLlm({
      models: emptyModels,
      local: { contextSize: 4096, parallel: 2, promptCache: '1gb' },
    })
    await llm.load('tiny')
  })
  afterAll(() => llm.close())

  interface AskOptions {
    readonly caller: string
    readonly tools?: readonly Tool[]
    readonly seed?: number | undefined
    readonly maxTokens?: number
  }

  async function ask(
    messages: readonly Message[],
    { caller, tools, seed, maxTokens = 16 }: AskOptions,
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

  const count = times(40, 6)

  test(`${count} conversations reuse cached states, and get the same answers as cold runs`, async () => {
    const subjects = ['Ada', 'a fox', 'the sea']
    const asked = (conversation: number, turn: number): readonly Message[] => [
      message('system', notes(43, 50 * conversation), '5m'),
      message('user', `Write a short story about ${subjects[turn]}.`),
    ]
    const all = subjects.flatMap((_, turn) =>
      Array.from({ length: count }, (_, conversation) => ({
        messages: asked(conversation, turn),
        // With a seed, any token can be sampled, so the smallest numeric difference changes the answer.
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
    // With a model this small, the rest of a call takes longer than its prompt. See bench/prompt-cache.mjs.
    expect(median(hits.map(({ firstMs }) => firstMs))).toBeLessThan(
      median(colds.map(({ firstMs }) => firstMs)) / 4,
    )
  }, 600_000)

  test('answers with a seed equal those of cold runs, even if the cached prefix was evaluated in batches with others', async () => {
    const asked = (index: number, question: string): readonly Message[] => [
      message('system', notes(7 + index, 90 * index), '1h'),
      message('user', notes(2 + (index % 5), index), '5m'),
      message('user', question),
    ]
    const all = Array.from({ length: times(48, 8) }, (_, index) => ({
      messages: asked(index, 'Write a short story about the sea.'),
      seed: index,
    }))
    const texts = (answers: readonly Marked[]): string[] => answers.map(({ text }) => text)
    const colds: Marked[] = []
    for (const [at, { messages, seed }] of all.entries())
      colds.push(await ask(messages, { seed, caller: `seeded cold ${at}` }))

    // More prompts than slots, without a seed. Their chunks are evaluated in shared batches.
    await Promise.all(all.map((_, at) => ask(asked(at, 'Hello'), { caller: 'seeded', maxTokens: 2 })))
    const warm: Marked[] = []
    for (const { messages, seed } of all) warm.push(await ask(messages, { seed, caller: 'seeded' }))
    const beside = await Promise.all(
      all.map(({ messages, seed }) => ask(messages, { seed, caller: 'seeded' })),
    )

    expect(texts(warm)).toEqual(texts(colds))
    expect(texts(beside)).toEqual(texts(colds))
    expect(
      warm.filter(
        (answer, at) => cached(answer)[0] !== (colds[at] && cached(colds[at])[1] + cached(colds[at])[2]),
      ),
    ).toEqual([])
  }, 600_000)

  test('each turn of an agent evaluates few tokens besides its new ones', async () => {
    const caller = 'agent'
    const tools: Tool[] = ['read', 'write', 'list', 'search'].map((name, at) => ({
      name: `${name}_file`,
      description: `${name} a file of the project. ${notes(3, 20 * at)}`,
      parameters: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
      ...(at === 3 && { cache: '1h' }),
    }))
    const talk: Message[] = [message('system', notes(40, 500), '1h'), message('user', 'Look at all boxes.')]
    /** Adds a breakpoint to each part of the last message. Earlier turns have none. */
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
      expect(cacheReadTokens + cacheWriteTokens['5m'] + cacheWriteTokens['1h']).toBeLessThanOrEqual(
        inputTokens,
      )
      evaluated.push(inputTokens - reusedTokens)
      allowed.push(1.2 * (inputTokens - before) + chunk)
      if (turn > 0) expect(cacheReadTokens).toBeGreaterThan(before - chunk)
      before = inputTokens
      // Other callers use the slots in between.
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
})

describe('answers with a seed', () => {
  let llm: Llm

  beforeAll(async () => {
    // More slots than concurrent calls, so that a repeated prompt is still in a slot.
    llm = await createLlm({ models: emptyModels, local: { contextSize: 2048, parallel: 10 } })
    await llm.load('tiny')
  })

  afterAll(() => llm.close())

  interface Reply {
    readonly text: string
    readonly reused: number
  }

  async function ask(
    messages: readonly Message[],
    caller: string,
    {
      seed,
      maxTokens = 24,
      by = llm,
    }: { readonly seed?: number; readonly maxTokens?: number; readonly by?: Llm },
  ): Promise<Reply> {
    // Any token can be sampled, so the smallest numeric difference changes the answer.
    const sampling = { temperature: 1, topK: 0, topP: 1, minP: 0, ...(seed !== undefined && { seed }) }
    const generation = await by.generate(
      { model: 'tiny', input: { kind: 'chat', messages }, maxTokens, sampling },
      { signal: new AbortController().signal, caller: { id: caller } },
    )
    let text = ''
    for await (const event of generation) {
      if (event.type === 'text') text += event.text
      if (event.type === 'end') return { text, reused: event.usage.reusedTokens }
    }
    throw new Error('The answer did not end.')
  }

  /** Runs `count` jobs, at most `width` at a time. Returns the results in order. */
  async function sideBySide<T>(
    count: number,
    width: number,
    job: (index: number) => Promise<T>,
  ): Promise<T[]> {
    const results: T[] = []
    let next = 0
    const worker = async (): Promise<void> => {
      for (let index = next++; index < count; index = next++) results[index] = await job(index)
    }
    await Promise.all(Array.from({ length: width }, worker))
    return results
  }

  /** Asks for a story, because only the stories of this model vary much. */
  const story = (about: string): Message => message('user', `Write a short story about ${about}.`)
  const noted = (count: number, first: number): Message => message('system', notes(count, first))

  describe(`${times(48, 6)} prompts at temperature 1`, () => {
    const count = times(48, 6)
    /** One to three chunks long. */
    const prompt = (index: number): Message[] => [noted(5 + (index % 4) * 4, index), story(`Ben ${index}`)]
    let alone: string[]

    beforeAll(async () => {
      const replies = await sideBySide(count, 1, (index) =>
        ask(prompt(index), `alone ${index}`, { seed: index }),
      )
      alone = replies.map(({ text }) => text)
    })

    test('get mostly different answers', () => {
      expect(new Set(alone).size).toBeGreaterThan(0.8 * count)
    })

    /** Before each call, its caller (`known`) or another one (`new`) runs the prompt without a seed. */
    const answers = (neighbours: number, before: 'new' | 'known'): Promise<Reply[]> =>
      sideBySide(count, neighbours + 1, async (index) => {
        const caller = `${before} ${index} beside ${neighbours}`
        await ask(prompt(index), before === 'known' ? caller : 'somebody', { maxTokens: 8 })
        return ask(prompt(index), caller, { seed: index })
      })

    test.each([1, 4])('get the same answers beside %i others as alone', async (neighbours) => {
      const replies = await answers(neighbours, 'new')

      expect(replies.map(({ text }) => text)).toEqual(alone)
      expect(replies.filter(({ reused }) => reused > 0)).toEqual([])
    })

    test.each([0, 1, 4])('get the same answers beside %i others if cached', async (neighbours) => {
      const replies = await answers(neighbours, 'known')

      expect(replies.map(({ text }) => text)).toEqual(alone)
      expect(replies.filter(({ reused }) => reused === 0 || reused % 64 > 0)).toEqual([])
    })
  })

  describe(`${times(10, 2)} conversations of four turns at temperature 1`, () => {
    const count = times(10, 2)
    const subjects = ['Ada', 'a fox', 'the sea', 'a robot']

    async function talk(index: number, callerIn: (turn: number) => string): Promise<Reply[]> {
      const messages: Message[] = [noted(4, index)]
      const replies: Reply[] = []
      for (const [turn, subject] of subjects.entries()) {
        messages.push(story(subject))
        const answer = await ask([...messages], callerIn(turn), { seed: 10 * index + turn, maxTokens: 48 })
        messages.push(message('assistant', answer.text))
        replies.push(answer)
      }
      return replies
    }
    const textsOf = (talks: readonly Reply[][]): string[][] =>
      talks.map((replies) => replies.map(({ text }) => text))
    let alone: string[][]

    beforeAll(async () => {
      const talks = await sideBySide(count, 1, (index) => talk(index, (turn) => `alone ${index}, ${turn}`))
      alone = textsOf(talks)
    })

    test.each([1, 4])('have the same answers beside %i others if no turn is cached', async (neighbours) => {
      const talks = await sideBySide(count, neighbours + 1, (index) =>
        talk(index, (turn) => `new ${index}, ${turn}, beside ${neighbours}`),
      )

      expect(textsOf(talks)).toEqual(alone)
      expect(talks.flat().filter(({ reused }) => reused > 0)).toEqual([])
    })

    test.each([0, 1, 4])(
      'have the same answers beside %i others if earlier turns are cached',
      async (neighbours) => {
        const talks = await sideBySide(count, neighbours + 1, (index) =>
          talk(index, () => `known ${index} beside ${neighbours}`),
        )

        expect(textsOf(talks)).toEqual(alone)
        expect(talks.flatMap((replies) => replies.slice(1)).filter(({ reused }) => reused === 0)).toEqual([])
      },
    )
  })

  describe('while another model uses the same cores', () => {
    const count = times(48, 2)
    const folder = emptyFolder()
    let both: Llm

    beforeAll(async () => {
      await copyFile(noiseModel, join(folder, 'other.gguf'))
      both = await createLlm({
        models: folder,
        local: { contextSize: 2048, threads: availableParallelism() },
      })
    })

    afterAll(() => both.close())

    /** Long enough that llama.cpp splits the attention of one token among its threads. */
    const prompt = (index: number): Message[] => [noted(30 + (index % 4) * 10, index), story(`Ben ${index}`)]
    const answers = (callerOf: (index: number) => string): Promise<Reply[]> =>
      sideBySide(count, 2, (index) => ask(prompt(index), callerOf(index), { seed: index, by: both }))
    const textsOf = (replies: readonly Reply[]): string[] => replies.map(({ text }) => text)

    test.runIf(availableParallelism() > 1)(
      `${count} long prompts get the same answers as before, cold and warm`,
      async () => {
        const alone = textsOf(await answers((index) => `alone ${index}`))
        await both.load('other')
        const leaving = new AbortController()
        const { signal } = leaving
        const other = (async () => {
          while (!signal.aborted) await both.chat('Hello', { model: 'other', maxTokens: 1_000, signal })
        })()

        const cold = await answers((index) => `beside another model ${index}`)
        const warm = await answers((index) => `beside another model ${index}`)

        leaving.abort()
        await expect(other).rejects.toMatchObject({ name: 'AbortError' })
        expect(textsOf(cold)).toEqual(alone)
        expect(textsOf(warm)).toEqual(alone)
      },
      240_000,
    )
  })
})
