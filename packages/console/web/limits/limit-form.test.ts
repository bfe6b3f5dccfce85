import { expect, test } from 'vitest'
import { parseLimitTexts, toLimitTexts } from './limit-form.ts'

test('Limits survive the way to a form and back', () => {
  const limits = { requestsPerMinute: 60, maxOutputTokens: 512, perEndUser: { concurrent: 2 } }

  expect(parseLimitTexts(toLimitTexts(limits))).toEqual({ limits, errors: {} })
})

test('Empty fields are no limits', () => {
  expect(parseLimitTexts({ requestsPerMinute: ' ', concurrent: '' })).toEqual({
    limits: undefined,
    errors: {},
  })
})

test.each(['10,000', '10 000', "10'000", '10_000', '10000'])('reads %s as ten thousand', (text) => {
  expect(parseLimitTexts({ tokensPerMinute: text }).limits).toEqual({ tokensPerMinute: 10_000 })
})

test.each(['0', '-5', '1.5', '1,5', 'many', '1e3'])('names the field with %s', (text) => {
  expect(parseLimitTexts({ 'perEndUser.concurrent': text })).toEqual({
    limits: undefined,
    errors: { 'perEndUser.concurrent': expect.stringContaining('whole number') },
  })
})
