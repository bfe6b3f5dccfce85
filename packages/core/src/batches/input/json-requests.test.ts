import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readJsonRequests } from './json-requests.ts'

const limits = { maxBytes: 10_000, maxItemBytes: 2_000 }

/** Yields a text in pieces of this many bytes. */
async function* inPieces(text: string, size = 7): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text)
  for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size)
}

async function read(text: string, size?: number, given = limits): Promise<unknown[]> {
  const all: unknown[] = []
  for await (const request of readJsonRequests(inPieces(text, size), given)) all.push(request)
  return all
}

test('any list comes out as JSON.parse gives it, in pieces of any size', () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(fc.jsonValue({ maxDepth: 4 }), { maxLength: 5 }),
      fc.jsonValue({ maxDepth: 2 }),
      fc.integer({ min: 1, max: 40 }),
      async (requests, other, size) => {
        const text = JSON.stringify({ before: other, requests, after: other })
        expect(JSON.stringify(await read(text, size, { maxBytes: 1e6, maxItemBytes: 1e6 }))).toBe(
          JSON.stringify(requests),
        )
      },
    ),
  ))

test('text in UTF-8 may be cut anywhere', async () => {
  expect(await read('{"requests":["größer 🦊"]}', 1)).toEqual(['größer 🦊'])
})

test('requests come before the body is complete', async () => {
  async function* endless(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('{"requests":[{"a":1},')
    throw new Error('The body broke off.')
  }
  const reader = readJsonRequests(endless(), limits)

  expect((await reader.next()).value).toEqual({ a: 1 })
  await expect(reader.next()).rejects.toThrow('The body broke off.')
})

test.each([
  ['', 'The request body is not valid JSON.'],
  ['{"requests":[', 'The request body is not valid JSON.'],
  ['{"requests":[{}', 'The request body is not valid JSON.'],
  ['{"requests":[{]}', 'The request body is not valid JSON.'],
  ['{"requests":[1,]}', 'The request body is not valid JSON.'],
  ['requests', 'The request body is not valid JSON.'],
  ['[]', 'The request body has to be a JSON object.'],
  ['"text"', 'The request body has to be a JSON object.'],
  ['{}', 'requests: Field required'],
  ['{"request":[]}', 'requests: Field required'],
  ['{"requests":{"a":{}}}', 'requests: Input should be a valid list'],
  ['{"requests":"all"}', 'requests: Input should be a valid list'],
  ['{"requests":null}', 'requests: Input should be a valid list'],
  [`{"requests":[${'['.repeat(200)}`, 'The request body is nested deeper than 128 levels.'],
])('%s is rejected: %s', async (text, message) => {
  await expect(read(text)).rejects.toMatchObject({ code: 'invalid_request', message })
})

test('a body over its limit is rejected before it ends', async () => {
  const text = `{"requests":[${'{"a":1},'.repeat(2_000)}`

  await expect(read(text)).rejects.toMatchObject({ code: 'too_large' })
})

test.each(['requests', 'other'])(
  'a value in `%s` that is too large is rejected before it ends',
  async (field) => {
    await expect(read(`{"${field}":["${'x'.repeat(5_000)}`)).rejects.toMatchObject({
      code: 'too_large',
      message: expect.stringContaining('requests.0'),
    })
  },
)
