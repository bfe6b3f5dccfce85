/** Models whose memory cannot be cut back read a prompt once, too: its state is saved, and loaded for the next that begins so. */
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLlm, type GenerateResult, type Llm } from '@modelmount/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { recurrentModel, slidingWindowModel } from '../support/models.ts'
import { until } from '../support/processes.ts'

const window = 128

describe.each([
  ['tiny-mamba.f16', recurrentModel, Number.POSITIVE_INFINITY],
  ['tiny-gemma3-swa.f16', slidingWindowModel, window],
])('%s', (name, model, mostSeeded) => {
  let llm: Llm

  beforeAll(async () => {
    llm = await createLlm({ models: model, local: { contextSize: 2048, parallel: 3 } })
  })
  afterAll(() => llm.close())

  interface Asked {
    readonly seed?: number
    readonly caller?: string
    readonly maxTokens?: number
  }
  async function ask(
    prompt: string,
    { seed, caller = 'ann', maxTokens = 24 }: Asked = {},
  ): Promise<Pick<GenerateResult, 'text' | 'usage'>> {
    let said = ''
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
      if (event.type === 'text') said += event.text
      if (event.type === 'end') return { text: said, usage: event.usage }
    }
    throw new Error('The answer did not end.')
  }

  test('the same prompt again, and one that goes on after it, are read from where they differ', async () => {
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

  test('also when all places were taken by others meanwhile', async () => {
    const cold = await ask(book(2, 300))
    for (const chapter of [3, 4, 5, 6]) await ask(book(chapter, 300), { maxTokens: 2 })

    const again = await ask(book(2, 300))

    expect(again.usage.reusedTokens).toBeGreaterThan(cold.usage.inputTokens - 80)
    expect(again.text).toBe(cold.text)
  })

  test('a conversation whose earlier thoughts are left out goes on from its last prompt', async () => {
    const turn = book(7, 300)
    const { usage } = await ask(`${turn} <think>`)

    const next = await ask(`${turn} So it is. What else?`)

    expect(next.usage.reusedTokens).toBeGreaterThan(usage.inputTokens - 80)
  })

  test('what was read for one caller is read again for another', async () => {
    await ask(book(8, 300), { caller: 'ann' })

    expect((await ask(book(8, 300), { caller: 'ben' })).usage.reusedTokens).toBe(0)
  })

  test('with a seed an answer is the same warm and cold, alone and beside others', async () => {
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

  test('files that are damaged or gone cost time only', async ({ skip }) => {
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

  test('none stays behind', async ({ skip }) => {
    const other = await createLlm({ models: model })
    await other.load(name)
    const [{ processId } = {}] = other.loaded()
    const had = folderOf(processId)
    await other.close()

    if (had === undefined) return skip('The RAM disk has no room here.')
    await until(() => !existsSync(had), 10_000)
  })
})

const ramDisk = '/dev/shm'

function folderOf(processId: number | undefined): string | undefined {
  if (!existsSync(ramDisk)) return undefined
  const name = readdirSync(ramDisk).find((one) => one.startsWith(`modelmount-${processId}-`))
  return name && join(ramDisk, name)
}

/** Some tokens more than its words. */
const book = (chapter: number, words: number): string =>
  `Chapter ${chapter}. ${Array.from({ length: words }, (_, word) => `word${(chapter * 7 + word) % 13}`).join(' ')}`
