import fc from 'fast-check'
import { expect, test } from 'vitest'
import { openPartialJson } from './partial-json.ts'

async function read(...pieces: string[]): Promise<unknown[]> {
  const json = await openPartialJson()
  return pieces.map((piece) => {
    json.push(piece)
    return json.value
  })
}

test('objects grow, and strings may be incomplete', async () => {
  expect(await read('{"na', 'me":', '"Ro', 'me","tags":["a', '"', ',{"x":', 'true}]', '}')).toEqual([
    {},
    {},
    { name: 'Ro' },
    { name: 'Rome', tags: ['a'] },
    { name: 'Rome', tags: ['a'] },
    { name: 'Rome', tags: ['a', {}] },
    { name: 'Rome', tags: ['a', { x: true }] },
    { name: 'Rome', tags: ['a', { x: true }] },
  ])
})

test('a number appears when it is complete', async () => {
  expect(await read('{"n":1', '2', '}')).toEqual([{}, {}, { n: 12 }])
})

test('values before do not change, and closed parts are shared', async () => {
  const [first, second] = (await read('{"a":{"b":1},"c":[2', ',3,')) as { a: object; c: number[] }[]

  expect([first?.c, second?.c]).toEqual([[], [2, 3]])
  expect(second?.a).toBe(first?.a)
})

test('text, white space and scalars at the root are read', async () => {
  expect(await read('"He', 'y"')).toEqual(['He', 'Hey'])
  expect(await read(' ', '\n{', ' }')).toEqual([undefined, {}, {}])
})

test('invalid JSON keeps the last value', async () => {
  expect(await read('{"a":"b"', ' oops', ',"c":1}')).toEqual([{ a: 'b' }, { a: 'b' }, { a: 'b' }])
})

test('a field named __proto__ is a field', async () => {
  const [value] = (await read('{"__proto__":{"x":["y')) as object[]

  expect(Object.keys(value ?? {})).toEqual(['__proto__'])
  expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
})

test('any JSON, however it is split, is read completely', async () => {
  await fc.assert(
    fc.asyncProperty(fc.jsonValue(), fc.integer({ min: 1, max: 5 }), async (value, size) => {
      const text = JSON.stringify(value)
      fc.pre(typeof JSON.parse(text) !== 'number')
      const values = await read(...(text.match(new RegExp(`.{1,${size}}`, 'gsu')) ?? []))

      expect(values.at(-1)).toEqual(JSON.parse(text))
    }),
  )
})
