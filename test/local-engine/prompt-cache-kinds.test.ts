/** Breakpoints in models that cannot go back: recurrent ones, and those that see a window of what was said. */
import { createLlm, type Llm } from '@modelmount/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cached, type Marked, message, notes, readMarked } from '../support/marked.ts'
import { recurrentModel, slidingWindowModel } from '../support/models.ts'
import { times } from '../support/scale.ts'

describe.each([
  ['tiny-mamba.f16', recurrentModel],
  // Its window is 128 tokens.
  ['tiny-gemma3-swa.f16', slidingWindowModel],
])('%s', (name, models) => {
  let llm: Llm

  beforeAll(async () => {
    llm = await createLlm({ models, local: { contextSize: 2048, parallel: 2 } })
    await llm.load(name)
  })
  afterAll(() => llm.close())

  interface Asked {
    readonly caller: string
    readonly question?: string
    readonly seed?: number
  }
  /** A system text of so many notes, and a question, each with a breakpoint. */
  async function ask(count: number, { caller, question = 'Hello', seed }: Asked): Promise<Marked> {
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
  /** Of a caller who has asked something else already. */
  async function warm(count: number, caller: string, seed?: number): Promise<Marked> {
    await ask(count, { caller, ...(seed !== undefined && { seed }) })
    return ask(count, { caller, question: 'Who are you?', ...(seed !== undefined && { seed }) })
  }
  const takePlaces = (): Promise<unknown> =>
    Promise.all(['one', 'other'].map((caller) => ask(12, { caller, question: caller })))

  const counts = Array.from({ length: times(26, 8) }, (_, index) => 11 + 5 * index)

  test('answers are the same warm and cold, from a place and from a file, and so are numbers', async () => {
    for (const count of counts) {
      const first = await ask(count, { caller: `warm ${count}` })
      const second = await ask(count, { caller: `warm ${count}`, question: 'Who are you?' })
      await takePlaces()
      const third = await ask(count, { caller: `warm ${count}`, question: 'Who is she?' })
      const [coldSecond, coldThird] = [
        await ask(count, { caller: `second ${count}`, question: 'Who are you?' }),
        await ask(count, { caller: `third ${count}`, question: 'Who is she?' }),
      ]

      const [, , hour] = cached(first)
      expect(hour).toBeGreaterThan(5 * count)
      for (const again of [second, third]) {
        expect(cached(again)[0]).toBe(hour)
        // What is kept near the end of a prompt may be a little longer.
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

  test('with a seed, too', async () => {
    const texts: string[] = []
    let read = 0
    for (const count of counts) {
      const first = await warm(count, `seeded ${count}`, count)
      await takePlaces()
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
