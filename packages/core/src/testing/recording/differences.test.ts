import { expect, test } from 'vitest'
import { describeDifference, findDifferences, measureDistance } from './differences.ts'

const describe = (recorded: unknown, got: unknown): readonly string[] =>
  findDifferences(recorded, got).map(describeDifference)

test('equal requests have no differences, whatever the order of their keys', () => {
  expect(describe({ a: 1, b: [{ c: null }] }, { b: [{ c: null }], a: 1 })).toEqual([])
})

test('each different field is named with both values', () => {
  const recorded = { model: 'tiny', messages: [{ role: 'user', text: 'Hi' }], maxTokens: 20 }
  const got = { model: 'tiny', messages: [{ role: 'user', text: 'Ho' }], maxTokens: 30 }

  expect(describe(recorded, got)).toEqual([
    'messages[0].text: recorded "Hi", got "Ho"',
    'maxTokens: recorded 20, got 30',
  ])
})

test('a field of one side only is one difference', () => {
  expect(describe({ tools: [{ name: 'now' }] }, { stop: ['.'] })).toEqual([
    'tools: recorded [{"name":"now"}], got nothing',
    'stop: recorded nothing, got ["."]',
  ])
})

test('long values are shortened, texts to the part that differs', () => {
  const start = 'a'.repeat(200)

  expect(describe({ text: `${start}b`, ids: [] }, { text: `${start}c`, ids: [[start]] })).toEqual([
    `text: recorded …"${'a'.repeat(20)}b", got …"${'a'.repeat(20)}c"`,
    `ids[0]: recorded nothing, got ["${'a'.repeat(78)}…`,
  ])
})

test('a text that shares its beginning and its end is nearer than another text', () => {
  const far = measureDistance(findDifferences('What is the capital of Spain?', 'Tell me a joke.'))
  const near = measureDistance(
    findDifferences('What is the capital of Spain?', 'What is the capital of Italy?'),
  )

  expect(near).toBeLessThan(far)
})
