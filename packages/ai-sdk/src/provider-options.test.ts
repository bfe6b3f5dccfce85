import { expect, test } from 'vitest'
import { type LanguageModelOptions, languageModelKeys, readCache, readOptions } from './provider-options.ts'

const read = (modelmount: object) =>
  readOptions<LanguageModelOptions>({ modelmount } as never, languageModelKeys)

test.each([
  ['reasoning', 'high', `expected true, false or 'auto', got "high".`],
  ['endUser', 7, 'expected a string, got 7.'],
  ['background', 'yes', 'expected a boolean, got "yes".'],
  ['parallelToolCalls', 0, 'expected a boolean, got 0.'],
])('a wrong value of %s is an error that says what is expected', (key, value, problem) => {
  expect(() => read({ [key]: value })).toThrow(`providerOptions.modelmount.${key}: ${problem}`)
})

test('a wrong lifetime of a breakpoint is an error', () => {
  expect(() => readCache({ modelmount: { cache: '10m' } })).toThrow(
    `providerOptions.modelmount.cache: expected '5m' or '1h', got "10m".`,
  )
})

test('an undefined option is absent', () => {
  expect(read({ reasoning: undefined, minP: 0.1 })).toEqual({ minP: 0.1 })
})
