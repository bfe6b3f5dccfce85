import { expect, test } from 'vitest'
import { correctLanguage, toLanguageTag } from './language.ts'

test.each([
  ['en-US', 'en-US'],
  ['de', 'de'],
  ['en-US@posix', undefined],
  ['C', undefined],
  ['', undefined],
])('the language %j is the tag %j', (language, tag) => {
  expect(toLanguageTag(language)).toBe(tag)
})

test('libraries read a valid language', () => {
  const browser = { language: 'en-US@posix' }
  expect(() => new Intl.NumberFormat(browser.language)).toThrow(RangeError)
  correctLanguage(browser)
  expect(() => new Intl.NumberFormat(browser.language)).not.toThrow()
})

test('a valid language stays', () => {
  const browser = Object.freeze({ language: 'de-AT' })
  correctLanguage(browser)
  expect(browser.language).toBe('de-AT')
})
