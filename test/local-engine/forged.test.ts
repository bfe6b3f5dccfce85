/** GGUF files with one fault each. A call of each ends in time, with an answer or a typed error. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLlm, type Llm } from '@modelmount/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { LlmError } from '../../packages/core/src/errors.ts'
import { checkModel } from '../../packages/core/src/models/gguf/check.ts'
import { type Forgery, forgeries } from '../support/forgeries.ts'
import { randomOf } from '../support/random.ts'
import { times } from '../support/scale.ts'

/** Number of files that native code loads. Each of them starts a model process. */
const sampleSize = times(Number.POSITIVE_INFINITY, 12)
const limitMs = 10_000

let folder: string
let llm: Llm

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'forged-'))
  llm = await createLlm({ models: folder, local: { contextSize: 256, parallel: 1, reloadCooldown: 0 } })
})

afterAll(async () => {
  await llm.close()
  await rm(folder, { recursive: true })
})

async function write({ name, bytes }: Forgery): Promise<{ readonly model: string; readonly path: string }> {
  const model = `forged-${forgeries.findIndex((one) => one.name === name)}`
  const path = join(folder, `${model}.gguf`)
  await writeFile(path, bytes())
  return { model, path }
}

const typedError = (error: unknown): LlmError => {
  expect(error).toMatchObject({ name: 'LlmError', message: expect.not.stringContaining(folder) })
  return LlmError.from(error)
}

/** Makes a call with the file as model. Returns `answered`, `failed`, or `crashed` for a crashed process. */
async function outcomeOf(forgery: Forgery): Promise<string> {
  const { model, path } = await write(forgery)
  const startedAt = performance.now()
  const outcome = await llm.chat('Hello', { model, maxTokens: 2 }).then(
    () => 'answered',
    (error) => {
      const { message } = typedError(error)
      return message.includes('unexpectedly') ? 'crashed' : 'failed'
    },
  )
  expect(performance.now() - startedAt, forgery.name).toBeLessThan(limitMs)
  await rm(path)
  return outcome
}

const passing: Forgery[] = []

test('more than 40 % of the faulty files are rejected before native code loads them, with a reason', async () => {
  for (const forgery of forgeries) {
    const { model: name, path } = await write(forgery)
    const model = { name, path, sizeBytes: 0, modifiedAt: new Date(0), digest: '', isBuiltIn: false }
    const startedAt = performance.now()
    const error = await checkModel(model).catch(typedError)
    if (error)
      expect(error).toMatchObject({ code: 'upstream', message: expect.stringContaining('cannot be used: ') })
    else passing.push(forgery)
    expect(performance.now() - startedAt, forgery.name).toBeLessThan(2_000)
    await rm(path)
  }

  expect(forgeries.length).toBeGreaterThan(250)
  expect(passing.length / forgeries.length).toBeLessThan(0.6)
}, 120_000)

describe('the other faulty files', () => {
  /** Files that crash the process. They lack a length that some architectures do not need. */
  const crashing = ['no feed_forward_length', 'no feed_forward_length, in BPE', 'byte 246 is 168']

  test('crash no model process, apart from known crashes, and the next call is served', async () => {
    const random = randomOf(2)
    const sample = passing
      .map((forgery) => ({ forgery, place: random() }))
      .sort((a, b) => a.place - b.place)
      .slice(0, sampleSize)
    const outcomes: { readonly name: string; readonly outcome: string }[] = []
    const namesOf = (outcome: string): string[] =>
      outcomes.filter((one) => one.outcome === outcome).map(({ name }) => name)

    for (const { forgery } of sample) outcomes.push({ name: forgery.name, outcome: await outcomeOf(forgery) })
    const next = await llm.chat('Hello', { model: 'tiny', temperature: 0 })

    expect(sample.length).toBeGreaterThan(10)
    expect(namesOf('crashed').filter((name) => !crashing.includes(name))).toEqual([])
    expect(namesOf('answered').length).toBeGreaterThan(0)
    expect(namesOf('failed').length).toBeGreaterThan(0)
    expect(next.text).toBe('Hello! How can I help you?')
  }, 900_000)
})
