import { expect, test } from 'vitest'
import { parse } from '../../parse.ts'
import { formatIssue } from '../errors.ts'
import { ChatCompletionRequest } from '../schema.ts'
import { toGenerateRequest } from '../translate.ts'

const body = { model: 'tiny', messages: [{ role: 'user', content: 'Hi' }] }
const sampling = (fields: object) =>
  toGenerateRequest(parse(ChatCompletionRequest, { ...body, ...fields }, formatIssue)).sampling
const plain = { temperature: 1, topP: 1 }

test("the options of llama.cpp's server and of vLLM are mapped to engine options", () => {
  const fields = {
    repetition_penalty: 1.2,
    repeat_last_n: -1,
    dry_multiplier: 0.8,
    dry_base: 2,
    dry_allowed_length: 3,
    dry_penalty_last_n: 100,
    dry_sequence_breakers: ['\n'],
    xtc_probability: 0.5,
    xtc_threshold: 0.2,
    ignore_eos: true,
    min_tokens: 5,
  }

  expect(sampling(fields)).toEqual({
    ...plain,
    repeatPenalty: 1.2,
    repeatLastN: -1,
    dry: { strength: 0.8, base: 2, allowedLength: 3, lastN: 100, breakers: ['\n'] },
    xtc: { probability: 0.5, threshold: 0.2 },
    ignoreEos: true,
    minTokens: 5,
  })
})

test('XTC and DRY are off without a probability or a strength', () => {
  expect(sampling({ dry_base: 2, dry_multiplier: 0, xtc_threshold: 0.2, xtc_probability: 0 })).toEqual(plain)
  expect(sampling({ dry_multiplier: null, xtc_probability: null })).toEqual(plain)
})

test("missing XTC and DRY fields have llama.cpp's defaults", () => {
  expect(sampling({ dry_multiplier: 1, xtc_probability: 1 })).toEqual({
    ...plain,
    dry: { strength: 1 },
    xtc: { probability: 1, threshold: 0.1 },
  })
})

test('`repeat_penalty` takes precedence over `repetition_penalty`', () => {
  expect(sampling({ repeat_penalty: 1.1, repetition_penalty: 1.5 })).toEqual({ ...plain, repeatPenalty: 1.1 })
})

test.each([
  ['repetition_penalty', 0],
  ['repeat_last_n', -2],
  ['dry_multiplier', -1],
  ['dry_base', 0.5],
  ['dry_allowed_length', 0],
  ['dry_penalty_last_n', 1.5],
  ['dry_sequence_breakers', Array(9).fill('a')],
  ['dry_sequence_breakers[0]', ['']],
  ['xtc_probability', 1.1],
  ['xtc_threshold', -0.1],
  ['ignore_eos', 1],
  ['min_tokens', -1],
])('the error for an invalid value of %s names the field: %j', (param, value) => {
  const [field = ''] = param.split('[')

  expect(() => sampling({ [field]: value })).toThrow(
    expect.objectContaining({ code: 'invalid_request', details: expect.objectContaining({ param }) }),
  )
})
