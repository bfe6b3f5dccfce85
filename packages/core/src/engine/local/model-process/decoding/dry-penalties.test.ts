import type { Token } from 'node-llama-cpp'
import { describe, expect, test } from 'vitest'
import { DryPenalties } from './dry-penalties.ts'

const plain = { strength: 1, base: 2, allowedLength: 2, lastN: 1_000, breakers: [] as readonly string[] }

/** Penalties by letter after an output in which each letter is a token. */
function penaltiesAfter(output: string, options: Partial<typeof plain> = {}) {
  const penalties = new DryPenalties({ ...plain, ...options }, (tokens) => String.fromCodePoint(...tokens))
  for (const letter of output) penalties.accept(letter.codePointAt(0) as Token)
  return Object.fromEntries(penalties.list().map(([token, bias]) => [String.fromCodePoint(token), bias]))
}

test('a token that would extend a repetition gets a penalty that grows with its length', () => {
  expect(penaltiesAfter('abcd')).toEqual({})
  expect(penaltiesAfter('abcda')).toEqual({})
  expect(penaltiesAfter('abcdab')).toEqual({ c: -1 })
  expect(penaltiesAfter('abcdabc')).toEqual({ d: -2 })
  expect(penaltiesAfter('abcdabc', { strength: 3, base: 10 })).toEqual({ d: -30 })
  expect(penaltiesAfter('abcdabc', { allowedLength: 4 })).toEqual({})
})

test('of several repetitions, the longest counts for each token', () => {
  expect(penaltiesAfter('xabc yabd abc xab')).toEqual({ c: -2, d: -1 })
})

test('a repetition may overlap with itself', () => {
  expect(penaltiesAfter('aaaaa')).toEqual({ a: -4 })
})

test('only the last tokens are searched', () => {
  expect(penaltiesAfter('abcdefab', { lastN: 8 })).toEqual({ c: -1 })
  expect(penaltiesAfter('abcdefab', { lastN: 7 })).toEqual({})
  expect(penaltiesAfter('abcdefab', { lastN: 0 })).toEqual({})
})

test('a penalty stays finite as a 32-bit float', () => {
  const { a } = penaltiesAfter('a'.repeat(500), { strength: 100, base: 100 })

  expect(Number.isFinite(Math.fround(a as number))).toBe(true)
  expect(a).toBeLessThan(-1e20)
})

describe('a sequence breaker', () => {
  test('ends a repetition', () => {
    expect(penaltiesAfter('ab:cdab:c')).toEqual({ d: -4 })
    expect(penaltiesAfter('ab:cdab:c', { breakers: [':'] })).toEqual({})
    expect(penaltiesAfter('ab:cdeab:cd', { breakers: [':'] })).toEqual({ e: -1 })
  })

  test('gets no penalty', () => {
    expect(penaltiesAfter('ab:ab', { breakers: [':'] })).toEqual({})
  })

  test('may have several tokens', () => {
    expect(penaltiesAfter('abENDcdabENDcd')).toEqual({ a: -32 })
    expect(penaltiesAfter('abENDcdabENDcd', { breakers: ['END'] })).toEqual({ a: -1 })
    expect(penaltiesAfter('abENDcdabENDc', { breakers: ['END'] })).toEqual({})
  })
})

test('10,000 tokens with the longest breakers take far less than a step each', () => {
  const breakers = Array<string>(8).fill(`${'e'.repeat(39)}x`)
  const startedAt = performance.now()

  penaltiesAfter('e'.repeat(10_000), { breakers })

  expect(performance.now() - startedAt).toBeLessThan(5_000)
})
