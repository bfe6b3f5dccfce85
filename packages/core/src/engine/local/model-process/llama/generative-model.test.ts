import { beforeAll, expect, test } from 'vitest'
import { ask, config, textOf } from '../../../../../../../test/support/bindings.ts'
import type { RuntimeModel } from '../model.ts'
import { loadModel } from './load.ts'

let own: RuntimeModel
let fallback: RuntimeModel

beforeAll(async () => {
  own = await loadModel(config, { steps: 0 })
  fallback = await loadModel(config, { steps: 0 }, () => undefined)
})

const questions = [
  'Hello',
  'Who are you?',
  'What is a GGUF file?',
  'Count from 1 to 9',
  'What is 2 plus 3?',
  'Tell me a short story.',
  `Say the last of these words: ${'river stone cloud '.repeat(30)}`,
]

test('internals and public API give the same output, one at a time and in parallel', async () => {
  const alone: string[] = []
  for (const question of questions) alone.push(textOf(await ask(own, question)))

  const together = await Promise.all(questions.map((question) => ask(own, question)))
  const publicly = await Promise.all(questions.map((question) => ask(fallback, question)))

  expect(alone[0]).toBe('Hello! How can I help you?')
  expect(together.map(textOf)).toEqual(alone)
  expect(publicly.map(textOf)).toEqual(alone)
  expect([own.parallel, fallback.parallel]).toEqual([4, 1])
}, 60_000)

test.each([
  { minTokens: 20 },
  { ignoreEos: true },
  { ignoreEos: true, dry: { strength: 2, allowedLength: 1 } },
  { minTokens: 30, repeatPenalty: 1.3, dry: { strength: 1, breakers: ['é', '\n'] } },
])('internals and public API sample alike with %j', async (options) => {
  const more = { sampling: { temperature: 0, ...options } }

  const [mine, theirs] = [
    await ask(own, 'Hello', undefined, more),
    await ask(fallback, 'Hello', undefined, more),
  ]

  expect(textOf(mine)).toBe(textOf(theirs))
  expect(textOf(mine).length).toBeGreaterThan('Hello! How can I help you?'.length)
})

test('without the internals, a request for logprobs is rejected with the field name', async () => {
  const asked = ask(fallback, 'Hello', undefined, { logprobs: 1 })

  await expect(asked).rejects.toMatchObject({ code: 'invalid_request', details: { param: 'logprobs' } })
})

test('over the public API, an aborted request gets no end event, and the next request gets its output', async () => {
  const leaving = new AbortController()
  const left = ask(fallback, 'Tell me a long story.', leaving.signal)
  const next = ask(fallback, 'Hello')
  leaving.abort()

  expect((await left).some(({ type }) => type === 'end')).toBe(false)
  expect(textOf(await next)).toBe('Hello! How can I help you?')
})
