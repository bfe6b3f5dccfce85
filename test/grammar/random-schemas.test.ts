import fc from 'fast-check'
import { expect, test } from 'vitest'
import { LlmError } from '../../packages/core/src/errors.ts'
import { checkGrammar } from '../../packages/core/src/grammar/gbnf/check.ts'
import { schemaToGrammar } from '../../packages/core/src/grammar/schema/json-schema.ts'
import { GbnfMatcher } from '../support/gbnf-matcher.ts'
import { GbnfSampler } from '../support/gbnf-sampler.ts'
import { anySchema, validator } from '../support/random-schemas.ts'
import { times } from '../support/scale.ts'

test('JSON sampled from the grammar of a random schema is valid under the schema', () => {
  const seen = { compiled: 0, rejected: new Map<string, number>() }
  fc.assert(
    fc.property(
      anySchema,
      fc.infiniteStream(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })),
      (random, numbers) => {
        const grammar = grammarOf(random, seen.rejected)
        if (grammar === undefined) return
        seen.compiled++
        checkGrammar(grammar)
        const validate = validator(random)
        const sampler = new GbnfSampler(grammar)
        const matcher = new GbnfMatcher(grammar)

        for (let run = 0; run < 5; run++) {
          const text = sampler.sample(() => numbers.next().value as number)
          expect([text, validate(JSON.parse(text))], JSON.stringify(random)).toEqual([text, true])
          expect([text, matcher.matches(text)], JSON.stringify(random)).toEqual([text, true])
        }
      },
    ),
    { numRuns: times(5_000, 150) },
  )
  process.stdout.write(
    `${seen.compiled} random schemas compiled; rejected: ${JSON.stringify([...seen.rejected])}\n`,
  )

  expect(seen.compiled).toBeGreaterThan(times(3_000, 90))
}, 600_000)

test.each(['toString', 'valueOf', 'constructor', '__proto__'])(
  'the grammars of const and enum accept a property named %s',
  (name) => {
    const value = JSON.parse(`{"${name}":{}}`)
    for (const schema of [{ const: value }, { enum: [value] }]) {
      const text = new GbnfSampler(schemaToGrammar(schema)).sample(() => 0)
      expect(JSON.parse(text)).toEqual(value)
      expect(validator(schema)(JSON.parse(text))).toBe(true)
      expect(validator(schema)({})).toBe(false)
    }
  },
)

function grammarOf(schema: object, rejected: Map<string, number>): string | undefined {
  try {
    return schemaToGrammar(schema)
  } catch (error) {
    if (!(error instanceof LlmError) || error.code !== 'invalid_request') throw error
    const reason = error.message.replace(/ at #\S*/, '').slice(0, 120)
    rejected.set(reason, (rejected.get(reason) ?? 0) + 1)
    return undefined
  }
}
