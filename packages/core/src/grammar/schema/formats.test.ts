import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { GbnfSampler } from '../../../../../test/support/gbnf-sampler.ts'
import { randomOf } from '../../../../../test/support/random.ts'
import { schemaToGrammar } from './json-schema.ts'

const samplesOf = (format: string, count: number): readonly string[] => {
  const sampler = new GbnfSampler(schemaToGrammar({ type: 'string', format }))
  const random = randomOf(7)
  return Array.from({ length: count }, () => JSON.parse(sampler.sample(random, 60)) as string)
}

test('every email address that the grammar allows is one for zod and for ajv-formats', () => {
  const ajv = new Ajv()
  addFormats.default(ajv)
  const isEmail = ajv.compile({ type: 'string', format: 'email' })
  const samples = samplesOf('email', 2_000)

  const rejected = samples.filter((text) => !z.email().safeParse(text).success || !isEmail(text))

  expect(rejected).toEqual([])
  expect(new Set(samples).size).toBeGreaterThan(1_500)
})
