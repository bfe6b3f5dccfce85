import { expect, test } from 'vitest'
import { requestIdOf } from './request-id.ts'

const idOf = (given: string | undefined): string =>
  requestIdOf({ header: (name) => (name === 'x-request-id' ? given : undefined) })

test.each([
  'x',
  '7f0c2b5e-8d5f-4a3e-9d6c-0c1f4f2b7a11',
  '01ARZ3NDEKTSV4RRFFQ69G5FAV',
  'Root=1-67891233-abcdef012345678912345678',
  'aGVsbG8+d29ybGQ/Cg==',
  'web.1:42/7_b',
  'a'.repeat(128),
])('the id %s of the client is kept', (given) => {
  expect(idOf(given)).toBe(given)
})

test.each([
  ['no id', undefined],
  ['an empty id', ''],
  ['an id of 129 characters', 'a'.repeat(129)],
  ['a line feed', 'a\nb'],
  ['a line feed at the end', 'a\n'],
  ['a carriage return', 'a\r'],
  ['a null character', 'a\0'],
  ['an escape sequence of terminals', 'a\u001b[31m'],
  ['a space', 'a b'],
  ['two ids', 'a, b'],
  ['a quotation mark', 'a"'],
  ['a field of a log line', '{"level":60}'],
  ['a tag', '<b>'],
  ['a percent escape', 'a%0d%0ab'],
  ['a format of console.log()', '%s'],
  ['a letter outside of ASCII', 'é'],
])('%s is replaced by an id of the server', (_what, given) => {
  const [one, other] = [idOf(given), idOf(given)]

  expect(one).toMatch(/^req_[\w-]{21}$/)
  expect(other).not.toBe(one)
})
