import fc from 'fast-check'
import { expect, test } from 'vitest'
import { times } from '../../../../../test/support/scale.ts'
import { accepts } from '../automata/automaton.ts'
import { buildNumberAutomaton } from './number-automaton.ts'
import { acceptsNumber, isNumberEmpty } from './numbers.ts'
import type { NumberShape } from './shape.ts'

const bound = (infinite: number) =>
  fc.record({
    value: fc.oneof(
      fc.constant(infinite),
      fc.integer({ min: -2_000, max: 2_000 }),
      fc.integer({ min: -20_000, max: 20_000 }).map((value) => value / 100),
      fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e18, max: 1e18 }),
    ),
    isExclusive: fc.boolean(),
  })
const shape = fc
  .record({
    isInteger: fc.boolean(),
    min: bound(Number.NEGATIVE_INFINITY),
    max: bound(Number.POSITIVE_INFINITY),
    multiples: fc.array(fc.constantFrom(1, 2, 3, 7, 10, 25, 0.5, 0.25, 0.01, 1.5), { maxLength: 1 }),
  })
  .map((parts): NumberShape => ({ type: 'number', ...parts }))
const written = fc.oneof(
  fc.integer({ min: -3_000, max: 3_000 }).map(String),
  fc.integer({ min: -300_000, max: 300_000 }).map((value) => String(value / 100)),
  fc.bigInt({ min: -(10n ** 19n), max: 10n ** 19n }).map(String),
  fc.integer({ min: -9_999, max: 9_999 }).map((value) => (value / 4).toFixed(4)),
)

test('accepted texts are numbers within the bounds', () => {
  fc.assert(
    fc.property(shape, fc.array(written, { minLength: 20, maxLength: 20 }), (numbers, texts) => {
      fc.pre(!isNumberEmpty(numbers))
      const automaton = buildNumberAutomaton(numbers)

      const near = [numbers.min.value, numbers.max.value].filter(Number.isFinite).flatMap((value) => {
        const places = [0, 1, 2, 5, 10].map((digits) => value.toFixed(digits))
        return [...places, String(value), String(value + 1), String(value - 1)]
      })
      for (const text of [...texts, ...near])
        if (accepts(automaton, text)) {
          expect([numbers, text, acceptsNumber(numbers, Number(text))]).toEqual([numbers, text, true])
          expect(text).toMatch(/^-?(0|[1-9][0-9]*)(\.[0-9]+)?$/)
        }
    }),
    { numRuns: times(1_000, 300) },
  )
})

test('short decimals within the bounds are accepted', () => {
  const few = fc.integer({ min: -99_999, max: 99_999 }).map((value) => value / 100)
  fc.assert(
    fc.property(few, few, few, fc.boolean(), (a, b, value, isInteger) => {
      const range: NumberShape = {
        ...{ type: 'number', isInteger, multiples: [] },
        min: { value: Math.min(a, b), isExclusive: false },
        max: { value: Math.max(a, b), isExclusive: true },
      }
      fc.pre(!isNumberEmpty(range))

      expect(accepts(buildNumberAutomaton(range), String(value))).toBe(acceptsNumber(range, value))
    }),
    { numRuns: 500 },
  )
})

test('a distant bound does not reject numbers near the other bound', () => {
  const shape: NumberShape = {
    ...{ type: 'number', isInteger: false, multiples: [] },
    min: { value: 0.25, isExclusive: true },
    max: { value: Number.MAX_SAFE_INTEGER, isExclusive: false },
  }
  const automaton = buildNumberAutomaton(shape)

  expect(
    ['0.5', '0.2500000001', '99999.125', '9007199254740991'].map((text) => accepts(automaton, text)),
  ).toEqual([...[true, true, true, true]])
  expect(['0.25', '0.1', '-1', '9007199254740992'].map((text) => accepts(automaton, text))).toEqual([
    ...[false, false, false, false],
  ])
})

test.each([
  [0.01, '0.07', true],
  [0.01, '19.99', true],
  [0.01, '0.075', false],
  [7, '21', true],
  [7, '-21', true],
  [7, '22', false],
  [2.5, '7.5', true],
  [2.5, '7', false],
  [1_000, '12000', true],
  [1_000, '12500', false],
  [500, '12500', true],
])('multipleOf %j accepts %j: %j', (step, text, isMultiple) => {
  const shape: NumberShape = {
    ...{ type: 'number', isInteger: false, multiples: [step] },
    min: { value: Number.NEGATIVE_INFINITY, isExclusive: false },
    max: { value: Number.POSITIVE_INFINITY, isExclusive: false },
  }

  expect(accepts(buildNumberAutomaton(shape), text)).toBe(isMultiple)
})
