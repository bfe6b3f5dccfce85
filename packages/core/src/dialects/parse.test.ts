import { expect, test } from 'vitest'
import { z } from 'zod'
import type { Issue } from '../errors.ts'
import { integerFrom } from './fields.ts'
import { type FieldIssue, type IssueFormatter, list, parse } from './parse.ts'

const wording: IssueFormatter = ({ param, issue, reason }) => `${param} is ${issue}: ${reason}`

test('a valid body is returned as the schema transforms it', () => {
  const schema = z.object({ name: z.string().trim(), size: z.number().optional() })

  const value = parse(schema, { name: ' a ', other: true }, wording)

  expect(value).toEqual({ name: 'a' })
})

const item = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('a'), text: z.string() }),
  z.object({ kind: z.literal('b'), list: z.array(z.int()) }),
])
const schema = z.object({
  name: z.string().min(1).max(10),
  mode: z.enum(['fast', 'slow']).optional(),
  heat: z.number().min(0).max(2).optional(),
  count: z.int().optional(),
  flag: z.boolean().optional(),
  items: z.array(item).min(1).max(2).optional(),
  content: z.union([z.string(), list(z.object({ text: z.string() }), { min: 1, max: 2 })]).optional(),
  table: z.record(z.string().regex(/^\d+$/, 'a key has to be a number.'), z.number()).optional(),
  whole: integerFrom(1, 3).optional(),
  later: z
    .unknown()
    .refine(() => false, { params: { issue: 'unsupported' }, error: 'not yet.' })
    .optional(),
  odd: z
    .number()
    .refine((value) => value % 2 === 1, 'has to be odd.')
    .optional(),
})

test.each<[body: object, param: string, issue: Issue]>([
  [{}, 'name', 'missing'],
  [{ name: null }, 'name', 'type'],
  [{ name: 5 }, 'name', 'type'],
  [{ name: '' }, 'name', 'value'],
  [{ name: 'n'.repeat(11) }, 'name', 'string_too_long'],
  [{ name: 'n', mode: 'medium' }, 'mode', 'value'],
  [{ name: 'n', mode: 5 }, 'mode', 'type'],
  [{ name: 'n', heat: -0.5 }, 'heat', 'decimal_too_small'],
  [{ name: 'n', heat: 3 }, 'heat', 'decimal_too_big'],
  [{ name: 'n', heat: 'hot' }, 'heat', 'type'],
  [{ name: 'n', count: 1.5 }, 'count', 'type'],
  [{ name: 'n', count: 2 ** 53 }, 'count', 'integer_too_big'],
  [{ name: 'n', count: -(2 ** 53) }, 'count', 'integer_too_small'],
  [{ name: 'n', flag: 'true' }, 'flag', 'type'],
  [{ name: 'n', items: [] }, 'items', 'empty'],
  [{ name: 'n', items: {} }, 'items', 'type'],
  [{ name: 'n', items: [{ kind: 'a' }] }, 'items[0].text', 'missing'],
  [{ name: 'n', items: [{ kind: 'b', list: [1, 'x'] }] }, 'items[0].list[1]', 'type'],
  [{ name: 'n', items: [{ kind: 'c' }] }, 'items[0].kind', 'value'],
  [{ name: 'n', items: [{}] }, 'items[0].kind', 'missing'],
  [{ name: 'n', items: Array(3).fill({ kind: 'a', text: '' }) }, 'items', 'array_too_long'],
  [{ name: 'n', content: 5 }, 'content', 'type'],
  [{ name: 'n', content: null }, 'content', 'type'],
  [{ name: 'n', content: [{ text: 'a' }, {}] }, 'content[1].text', 'missing'],
  [{ name: 'n', content: [{ text: 'a' }, { text: 5 }] }, 'content[1].text', 'type'],
  [{ name: 'n', content: [] }, 'content', 'empty'],
  [{ name: 'n', content: [{ text: 'a' }, { text: 'b' }, {}] }, 'content', 'array_too_long'],
  [{ name: 'n', table: { 5: 'x' } }, 'table.5', 'type'],
  [{ name: 'n', table: { x: 5 } }, 'table.x', 'value'],
  [{ name: 'n', later: 1 }, 'later', 'unsupported'],
  [{ name: 'n', odd: 2 }, 'odd', 'value'],
])('%j is rejected, and the error names the field %s and the issue %s', (body, param, issue) => {
  const parsing = (): unknown => parse(schema, body, wording)

  expect(parsing).toThrow(expect.objectContaining({ code: 'invalid_request', details: { param, issue } }))
})

test.each([
  [{ name: 'n', heat: 'hot' }, 'heat is type: expected a number.'],
  [{ name: 'n', odd: 2 }, 'odd is value: has to be odd.'],
  [{ name: 'n', later: 1 }, 'later is unsupported: not yet.'],
  [{ name: 'n', table: { x: 5 } }, 'table.x is value: a key has to be a number.'],
])('%j is rejected with the message %j', (body, message) => {
  expect(() => parse(schema, body, wording)).toThrow(message)
})

test.each<[body: object, more: Partial<FieldIssue>]>([
  [{ name: 5 }, { expected: 'string', limit: undefined }],
  [{ name: 'n', count: 'x' }, { expected: 'number' }],
  [
    { name: 'n', heat: 3 },
    { expected: undefined, limit: 2 },
  ],
  [{ name: 'n', heat: -1 }, { limit: 0 }],
  [{ name: 'n', items: Array(3).fill({ kind: 'a', text: '' }) }, { limit: 2 }],
  [
    { name: 'n', whole: 'x' },
    { expected: 'int', issue: 'type' },
  ],
  [
    { name: 'n', whole: 0 },
    { limit: 1, issue: 'integer_too_small' },
  ],
  [
    { name: 'n', whole: 4 },
    { limit: 3, issue: 'integer_too_big' },
  ],
])('for %j the issue formatter gets %j', (body, more) => {
  const told: FieldIssue[] = []

  const parsing = (): unknown =>
    parse(schema, body, (problem) => {
      told.push(problem)
      return ''
    })

  expect(parsing).toThrow()
  expect(told).toMatchObject([more])
})

test('an absent integer is `missing`', () => {
  const parsing = (): unknown => parse(z.object({ whole: integerFrom(1) }), {}, wording)

  expect(parsing).toThrow(expect.objectContaining({ details: { param: 'whole', issue: 'missing' } }))
})

test.each([[null], [undefined], ['text'], [5], [[]], [true]])('the body %j is rejected', (body) => {
  const parsing = (): unknown => parse(schema, body, wording)

  expect(parsing).toThrow(
    expect.objectContaining({
      code: 'invalid_request',
      message: expect.stringMatching(/^ is (type|missing): /),
      details: { issue: expect.toBeOneOf(['type', 'missing']) },
    }),
  )
})

test('the first of several issues is reported', () => {
  const parsing = (): unknown => parse(schema, { name: 5, heat: 'hot' }, wording)

  expect(parsing).toThrow(expect.objectContaining({ details: { param: 'name', issue: 'type' } }))
})

test('a list is checked up to its first invalid item', () => {
  const read: unknown[] = []
  const item = z.unknown().refine((value) => read.push(value) && value !== 'wrong')

  const parsing = (): unknown =>
    parse(z.object({ a: list(item, { max: 5 }) }), { a: [1, 'wrong', 3, 'wrong'] }, wording)

  expect(parsing).toThrow(expect.objectContaining({ details: { param: 'a[1]', issue: 'value' } }))
  expect(read).toEqual([1, 'wrong'])
})

test('the items of a too long list are not checked', () => {
  const read: unknown[] = []
  const item = z.unknown().refine((value) => read.push(value))

  const parsing = (): unknown => parse(z.object({ a: list(item, { max: 2 }) }), { a: [1, 2, 3] }, wording)

  expect(parsing).toThrow(expect.objectContaining({ details: { param: 'a', issue: 'array_too_long' } }))
  expect(read).toEqual([])
})

test('the items of a list are returned as the schema transforms them', () => {
  const value = parse(list(z.string().trim(), { max: 2 }), [' a', 'b '], wording)

  expect(value).toEqual(['a', 'b'])
})
