/** Random calls of the real model: answers are those of somebody who has asked nothing before, and numbers are true. */
import { existsSync, readdirSync } from 'node:fs'
import { createLlm } from '@modelmount/core'
import type { CacheLifetime, Message } from '@modelmount/core/engine'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Clocked, openClocked } from '../support/clocked.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { LeaseBook } from '../support/lease-book.ts'
import { cached, type Marked, message, notes, readMarked } from '../support/marked.ts'
import { noOrphan, until } from '../support/processes.ts'
import { times } from '../support/scale.ts'

interface Question {
  readonly tenant: string
  readonly messages: readonly Message[]
  readonly hasHour: boolean
  readonly seed: number | undefined
}

const lifetime = fc.constantFrom<(CacheLifetime | undefined)[]>(undefined, '5m', '5m', '1h')
/** One of a few conversations up to somewhere, with breakpoints anywhere; what is kept for longer comes first. */
const questions: fc.Arbitrary<Question> = fc
  .record({
    tenant: fc.constantFrom('ann', 'ann', 'ben'),
    about: fc.nat(1),
    length: fc.constantFrom(4, 8, 15),
    turns: fc.nat(2),
    marks: fc.array(lifetime, { minLength: 4, maxLength: 4 }),
    last: fc.constantFrom('Hello', 'Who are you?', 'Tell me a short story.'),
    seed: fc.constantFrom(undefined, undefined, 7, 8),
  })
  .map(({ about, length, turns, marks, last, ...question }) => {
    const texts = [
      notes(length, about),
      ...Array.from({ length: 2 * turns }, (_, at) => notes(3, 10 * at)),
      last,
    ]
    const sorted = marks.toSorted((a, b) => Number(b === '1h') - Number(a === '1h'))
    const lifetimes = texts.map((_, at) => sorted[at])
    return {
      ...question,
      messages: texts.map((text, at) =>
        message(at === 0 ? 'system' : at % 2 === 1 ? 'user' : 'assistant', text, lifetimes[at]),
      ),
      hasHour: lifetimes.includes('1h'),
    }
  })

const requestOf = ({ messages, seed }: Question) =>
  ({
    input: { kind: 'chat', messages },
    maxTokens: 12,
    sampling: seed === undefined ? { temperature: 0 } : { temperature: 1, topK: 0, topP: 1, seed },
    returnTokens: true,
  }) as const

/** What calls have written: behind which other breakpoints, too, only the model knows. */
class Written {
  readonly #book = new LeaseBook()
  #texts: { readonly tenant: string; readonly tokens: readonly number[] }[] = []

  clear(): void {
    this.#book.clear()
    this.#texts = []
  }

  forgetEnded(now: number): void {
    this.#book.forgetEnded(now)
  }

  /** Compares what is said with what may be, and notes it. */
  add({ tenant, hasHour, seed }: Question, answer: Marked, now: number): void {
    const [read, five, hour] = cached(answer) as [number, number, number]
    const { inputTokens, reusedTokens } = answer.usage
    const prompt = answer.tokens.slice(0, inputTokens)
    const last = read + five + hour
    const [least] = this.#book.kept(tenant, prompt, last, now)
    const most = Math.max(
      0,
      ...this.#texts.filter((text) => text.tenant === tenant).map(({ tokens }) => common(tokens, prompt)),
    )
    expect(Math.min(read, five, hour)).toBeGreaterThanOrEqual(0)
    expect(last).toBeLessThan(inputTokens)
    expect(read).toBeLessThanOrEqual(reusedTokens)
    expect(read).toBeLessThanOrEqual(most)
    if (seed === undefined) expect(read).toBeGreaterThanOrEqual(least)
    if (!hasHour) expect(hour).toBe(0)
    expect(answer.usage).toMatchObject(answer.plan)

    this.#book.read(tenant, prompt, read, 0, now)
    if (hour > 0) this.#book.write(tenant, prompt.slice(0, read + hour), '1h', now)
    if (five > 0) this.#book.write(tenant, prompt.slice(0, last), '5m', now)
    this.#texts.push({ tenant, tokens: prompt.slice(0, last) })
  }
}

function common(some: readonly number[], others: readonly number[]): number {
  const end = some.findIndex((token, at) => others[at] !== token)
  return end === -1 ? some.length : end
}

describe('in the process of the test, with a clock that is set', () => {
  let model: Clocked

  beforeAll(async () => {
    model = await openClocked({ contextSize: 1024, parallel: 3 })
  })
  afterAll(() => model.close())

  const count = times(600, 40)

  test(`${count} answers are those of a new caller`, async () => {
    const steps = fc.oneof(
      { weight: 10, arbitrary: questions },
      { weight: 2, arbitrary: fc.constantFrom(1, 4.9, 5.1, 61) },
      { weight: 1, arbitrary: fc.constant('kill' as const) },
    )
    const written = new Written()
    let asked = 0
    let reads = 0
    for (const step of fc.sample(steps, { numRuns: 2 * count, seed: 5 })) {
      if (asked === count) break
      if (step === 'kill') {
        model.restart()
        written.clear()
      } else if (typeof step === 'number') {
        model.now += step * 60_000
        written.forgetEnded(model.now)
        if (step > 60) written.clear()
      } else {
        model.evaluated = 0
        const answer = await model.ask(requestOf(step), step.tenant)
        const { inputTokens, reusedTokens, outputTokens } = answer.usage
        const evaluated = inputTokens - reusedTokens + outputTokens
        // The last token is not put through the model, unless another one behind it ended the answer.
        expect([evaluated, evaluated - 1]).toContain(model.evaluated)
        written.add(step, answer, model.now)
        reads += Math.sign(cached(answer)[0])
        const cold = await model.ask(requestOf(step), `cold ${asked++}`)
        expect(cached(cold)[0]).toBe(0)
        expect(cold.usage.reusedTokens).toBe(0)
        expect([step.seed, answer.usage, answer.text]).toEqual([step.seed, answer.usage, cold.text])
      }
    }

    expect(asked).toBe(count)
    expect(reads).toBeGreaterThan(count / 10)
  }, 600_000)
})

describe('in a model process', () => {
  const models = emptyFolder()
  const ramDisk = '/dev/shm'
  const kills = times(20, 3)
  const callsEach = 8

  test(`${kills} kills between random calls leave nothing that is read, and no file`, async () => {
    const llm = await createLlm({ models, local: { contextSize: 1023, parallel: 2 } })
    const written = new Written()
    const processIds = new Set<number>()
    let reads = 0
    const all = fc.sample(questions, { numRuns: kills * callsEach, seed: 6 })
    for (const [at, question] of all.entries()) {
      const generation = await llm.generate(
        { model: 'tiny', ...requestOf(question) },
        { signal: new AbortController().signal, caller: { id: 'somebody', tenant: question.tenant } },
      )
      const answer = await readMarked(generation)
      written.add(question, answer, 1)
      reads += Math.sign(cached(answer)[0])
      const [{ processId = 0 } = {}] = llm.loaded()
      processIds.add(processId)
      if (at % callsEach < callsEach - 1) continue
      process.kill(processId, 'SIGKILL')
      await until(() => llm.loaded()[0]?.processId !== processId, 5_000)
      written.clear()
    }
    // Who comes next removes what the last of them has left.
    await llm.load('tiny')
    processIds.add(llm.loaded()[0]?.processId ?? 0)
    await llm.close()
    await noOrphan(processIds)

    expect(processIds.size).toBe(kills + 1)
    expect(reads).toBeGreaterThan(kills)
    const left = (existsSync(ramDisk) ? readdirSync(ramDisk) : []).filter((name) =>
      [...processIds].some((id) => name.startsWith(`modelmount-${id}-`)),
    )
    expect(left).toEqual([])
  }, 600_000)
})
