import { expect, test } from 'vitest'
import { resolveInterceptors } from './interceptors.ts'

const before = () => undefined

test.each<[given: unknown, message: string]>([
  [{ before }, 'Expected `interceptors` to be a list, got [object Object] (object)'],
  [[null], 'Expected `interceptors[0]` to be an object, got null'],
  [[before], 'Expected `interceptors[0]` to be an object, got () => undefined (function)'],
  [[{ before: 'redact' }], 'Expected `interceptors[0].before` to be a function, got redact (string)'],
  [[{ before }, { before, after: 5 }], 'Expected `interceptors[1].after` to be a function, got 5 (number)'],
  [[{ mapEvents: null }], 'Expected `interceptors[0].mapEvents` to be a function, got null (object)'],
  [[{ before, name: 5 }], 'Expected `interceptors[0].name` to be a string, got 5 (number)'],
  [
    [{ befor: before }],
    'Unknown option `interceptors[0].befor`, expected one of: interceptors[0].name, interceptors[0].before, interceptors[0].mapEvents, interceptors[0].after',
  ],
  [[{ name: 'audit' }], 'Expected `interceptors[0]` to have one of before(), mapEvents(), after()'],
])('%j is rejected', (given, message) => {
  expect(() => resolveInterceptors(given)).toThrow(new TypeError(message))
})

test('objects of a class may have other fields, and a list is copied', () => {
  class Audit {
    rows = []
    after(): void {}
  }
  const given = [new Audit(), { name: 'redaction', before }]

  const resolved = resolveInterceptors(given)
  given.pop()

  expect(resolved).toHaveLength(2)
  expect(resolveInterceptors(undefined)).toEqual([])
})
