import { expect, test } from 'vitest'
import { credentialOf } from './credential.ts'

const of = (headers: Readonly<Record<string, string>>) => credentialOf({ header: (name) => headers[name] })

test.each([
  [{}, undefined],
  [{ 'x-api-key': 'a' }, 'a'],
  [{ authorization: 'Bearer a' }, 'a'],
  [{ authorization: 'BEARER   a  ' }, 'a'],
  [{ authorization: 'Bearer a', 'x-api-key': 'a' }, 'a'],
  [{ authorization: 'Bearer a', 'x-api-key': '' }, 'a'],
  [{ authorization: 'Basic a', 'x-api-key': 'b' }, 'b'],
  [{ authorization: 'Basic a' }, undefined],
  [{ authorization: 'Bearer' }, undefined],
  [{ authorization: 'Bearer a b' }, undefined],
  [{ authorization: 'Bearera' }, undefined],
])('the headers %j contain the key %j', (headers, key) => {
  expect(of(headers)).toBe(key)
})

test('two different keys are rejected', () => {
  expect(() => of({ authorization: 'Bearer a', 'x-api-key': 'b' })).toThrow('contain different keys')
})

test('a header of megabytes is read quickly', () => {
  const start = performance.now()

  for (const authorization of [
    `Bearer ${' '.repeat(2 ** 20)}`,
    `bearer ${'a '.repeat(2 ** 19)}`,
    `Bearer ${' '.repeat(2 ** 16)}a${' '.repeat(2 ** 16)}b`,
  ])
    expect(of({ authorization })).toBeUndefined()

  expect(performance.now() - start).toBeLessThan(500)
})
