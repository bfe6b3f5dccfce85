import { once } from 'node:events'
import { Agent, createServer, type IncomingMessage, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { LlmError } from '../errors.ts'
import { parseJson, readNodeJson, readParsedBody } from './body.ts'

const limitBytes = 1_000

let server: Server
let agent: Agent
beforeEach(async () => {
  // All requests share one socket, so unread bytes of one request would break the next request.
  agent = new Agent({ keepAlive: true, maxSockets: 1 })
  server = createServer(async (req, res) => {
    try {
      res.end(JSON.stringify({ read: await readNodeJson(req, limitBytes) }))
    } catch (error) {
      const { code, message } = LlmError.from(error)
      res.statusCode = 400
      res.end(JSON.stringify({ code, message }))
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterEach(() => {
  agent.destroy()
  server.close()
})

interface Reply {
  readonly body: unknown
  readonly reused: boolean
}

/** Sends a POST request. A single piece gets a content-length; several pieces use chunked encoding. */
async function post(
  pieces: readonly (string | Buffer)[],
  headers: Record<string, string> = {},
): Promise<Reply> {
  const { port } = server.address() as AddressInfo
  const [only, ...more] = pieces
  const length = more.length === 0 ? { 'content-length': Buffer.byteLength(only ?? '') } : {}
  const req = request({ port, host: '127.0.0.1', agent, method: 'POST', headers: { ...length, ...headers } })
  for (const piece of pieces) req.write(piece)
  req.end()
  const [res] = (await once(req, 'response')) as [IncomingMessage]
  let text = ''
  for await (const chunk of res) text += chunk
  return { body: JSON.parse(text), reused: req.reusedSocket }
}

/** Reads the next request with an allowance, and returns the reservations. */
function allow(maxBytes = 10_000, untilRead: () => Promise<unknown> = async () => {}) {
  const reserved: number[] = []
  server.removeAllListeners('request').once('request', async (req, res) => {
    await untilRead()
    const allowance = { maxBytes, stallTimeoutMs: 12_345, reserve: (bytes: number) => reserved.push(bytes) }
    const read = await readNodeJson(req, limitBytes, undefined, allowance).catch(({ code }) => code)
    res.end(JSON.stringify(read))
  })
  return reserved
}

/** JSON text of exactly this many bytes. */
const jsonOf = (bytes: number): string => JSON.stringify('x'.repeat(bytes - 2))

test('a body is read from one chunk or from many', async () => {
  const one = await post(['{"text":"ü😀"}'])
  const many = await post(['{"te', 'xt":', '"ü😀"}'])

  expect(one.body).toEqual({ read: { text: 'ü😀' } })
  expect(many.body).toEqual({ read: { text: 'ü😀' } })
})

test('a body of exactly the limit is read', async () => {
  const { body } = await post([jsonOf(1_000)])

  expect(body).toEqual({ read: 'x'.repeat(998) })
})

test('a body over the limit is rejected by its content-length', async () => {
  const { body } = await post([jsonOf(1_001)])

  expect(body).toEqual({ code: 'too_large', message: 'The request body is larger than 1000 bytes.' })
})

test('a body over the limit is rejected by its bytes', async () => {
  const { body } = await post([jsonOf(900), jsonOf(101)])

  expect(body).toEqual({ code: 'too_large', message: 'The request body is larger than 1000 bytes.' })
})

test('the length of a body is reserved before it is read', async () => {
  const reserved = allow()

  await post([jsonOf(700)])

  expect(reserved).toEqual([700])
})

test('a chunked body is reserved as it arrives', async () => {
  const reserved = allow()

  await post(['"', 'x'.repeat(500), '"'])

  expect(reserved.reduce((sum, bytes) => sum + bytes)).toBe(502)
})

test('a body larger than the allowance is rejected and reserves nothing', async () => {
  const reserved = allow(699)

  const { body } = await post([jsonOf(700)])

  expect([body, reserved]).toEqual(['too_large', []])
})

test('a body that has already arrived takes no timer', async () => {
  const timers = vi.spyOn(globalThis, 'setTimeout')
  onTestFinished(() => timers.mockRestore())
  const ofStalls = () => timers.mock.calls.filter(([, ms]) => ms === 12_345).length

  for (const body of [[jsonOf(700)], ['"', 'x'.repeat(500), '"'], ['']]) {
    allow(10_000, () => new Promise(setImmediate))
    await post(body)
  }
  expect(ofStalls()).toBe(0)

  let send = (): void => {}
  allow(10_000, async () => send())
  const { port } = server.address() as AddressInfo
  const late = request({ port, host: '127.0.0.1', method: 'POST', headers: { 'content-length': 2 } })
  send = () => setImmediate(() => late.end('{}'))
  late.flushHeaders()
  await once(late, 'response')
  expect(ofStalls()).toBeGreaterThan(0)
})

test('a body with a too large content-length is rejected before it is sent', async () => {
  const { port } = server.address() as AddressInfo
  const headers = { 'content-length': 1_001 }
  const req = request({ port, host: '127.0.0.1', method: 'POST', headers })
  req.on('error', () => {}) // The test destroys the request before its body is complete.
  req.flushHeaders()

  const [res] = (await once(req, 'response')) as [IncomingMessage]

  expect(res.statusCode).toBe(400)
  req.destroy()
})

test('a chunked body is rejected once it is too large', async () => {
  const { port } = server.address() as AddressInfo
  const req = request({ port, host: '127.0.0.1', method: 'POST' })
  req.on('error', () => {}) // The test destroys the request before its body is complete.
  req.write(jsonOf(1_001))

  const [res] = (await once(req, 'response')) as [IncomingMessage]

  expect(res.statusCode).toBe(400)
  req.destroy()
})

test.each([
  ['rejected by its content-length', [jsonOf(2_000_000)]],
  ['rejected by its bytes', [jsonOf(1_000_000), jsonOf(1_000_000)]],
  ['that is not JSON', ['hello']],
])('the connection can be reused after a body %s', async (_what, pieces) => {
  const refused = await post(pieces)

  const next = await post(['{"n":2}'])

  expect(refused.body).toHaveProperty('code')
  expect(next).toEqual({ body: { read: { n: 2 } }, reused: true })
})

test('a body with a content-encoding is rejected, and the connection stays open', async () => {
  const refused = await post([gzipSync('{"n":1}')], { 'content-encoding': 'gzip' })

  const next = await post(['{"n":2}'], { 'content-encoding': 'identity' })

  expect(refused.body).toEqual({
    code: 'invalid_request',
    message: 'A request body in content-encoding gzip is not supported.',
  })
  expect(next).toEqual({ body: { read: { n: 2 } }, reused: true })
})

test('an absent body is not valid JSON', async () => {
  const { body } = await post([''])

  expect(body).toEqual({ code: 'invalid_request', message: 'The request body is not valid JSON.' })
})

test.each(['', ' \r\n\t'])('the empty body %j is distinguished from invalid JSON', (blank) => {
  const detailsOf = (text: string): object => {
    try {
      return Object(parseJson(Buffer.from(text)))
    } catch (error) {
      return LlmError.from(error).details
    }
  }

  expect(detailsOf(blank)).toEqual({ emptyBody: true })
  expect(detailsOf(`${blank}{`)).toEqual({})
})

const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)
const parseText = (text: string): unknown => parseJson(Buffer.from(text))
const tooDeep = 'The request body is nested deeper than 128 levels.'

test('128 levels are accepted', () => {
  expect(JSON.stringify(parseText(nested(128)))).toBe(nested(128))
})

test.each([
  ['arrays', nested(129)],
  ['objects', `${'{"a":'.repeat(129)}1${'}'.repeat(129)}`],
  ['both', `${'[{"a":'.repeat(64)}[1]${'}]'.repeat(64)}`],
  ['arrays that are never closed', '['.repeat(100_000)],
  ['arrays behind a string', `["\\"",${nested(128)}]`],
])('129 levels of %s are rejected', (_what, text) => {
  expect(() => parseText(text)).toThrow(
    expect.objectContaining({ code: 'invalid_request', message: tooDeep }),
  )
})

test('closed levels do not count', () => {
  const text = `[${Array.from({ length: 1_000 }, () => '[{}]').join()}]`

  expect(parseText(text)).toHaveLength(1_000)
})

test.each([
  ['brackets', '['.repeat(500)],
  ['braces', '{'.repeat(500)],
  ['brackets behind an escaped quote', `"${'['.repeat(500)}`],
  ['brackets behind an escaped backslash and an escaped quote', `\\"${'['.repeat(500)}`],
  ['brackets before a backslash at the end', `${'['.repeat(500)}\\`],
  ['nothing but backslashes', '\\'.repeat(501)],
])('%s within a string are not counted as levels', (_what, text) => {
  const value = { [text]: [text, text] }

  expect(parseText(JSON.stringify(value))).toEqual(value)
})

test('a quote after an escaped backslash ends the string', () => {
  const text = `["\\\\",${nested(128)}]`

  expect(() => parseText(text)).toThrow(tooDeep)
})

test.each(['{"a":1', '{"a":1}}', '"never closed', '"', '{a:1}', "{'a':1}", 'NaN', '[1,]', ']['])(
  '%s is not valid JSON',
  (text) => {
    expect(() => parseText(text)).toThrow(
      expect.objectContaining({ code: 'invalid_request', message: 'The request body is not valid JSON.' }),
    )
  },
)

test('the message of `JSON.parse` appears only in the cause', () => {
  const parsing = (): unknown => parseText('{"secret": hunter2}')

  expect(parsing).toThrow(
    expect.objectContaining({
      message: 'The request body is not valid JSON.',
      cause: expect.any(SyntaxError),
    }),
  )
})

test.each([
  ['a byte that begins no character', [0x22, 0xff, 0x22]],
  ['half a character', [0x22, 0xc3, 0x22]],
  ['a surrogate', [0x22, 0xed, 0xa0, 0x80, 0x22]],
  ['a slash in two bytes', [0x22, 0xc0, 0xaf, 0x22]],
])('%s is not UTF-8 and therefore not valid JSON', (_what, bytes) => {
  expect(() => parseJson(Uint8Array.from(bytes))).toThrow(
    expect.objectContaining({ code: 'invalid_request', message: 'The request body is not valid JSON.' }),
  )
})

test('bytes are parsed from their offset in a larger buffer', () => {
  const bytes = Buffer.from('[[[{"n":1}]]]').subarray(3, 10)

  expect(parseJson(bytes)).toEqual({ n: 1 })
})

const form = 'application/x-www-form-urlencoded'
const readAsForm = expect.objectContaining({
  code: 'invalid_request',
  message:
    'An earlier body parser read the request body as a form, because of its content-type. Send application/json. In the app, mount the routes before the body parser. In Nest, set bodyParser to false.',
  details: { setup: true },
})

test.each([
  ['an object', { model: 'tiny' }, 'application/json'],
  ['an object without a content-type', { model: 'tiny' }, undefined],
  ['null', null, form],
  ['an empty object', {}, form],
  ['JSON that was sent as a form', { model: 'tiny', stream: false }, form],
])('%s from an earlier body parser is returned unchanged', (_what, parsed, contentType) => {
  expect(readParsedBody(parsed, contentType)).toBe(parsed)
})

test.each([
  ['fields', { model: 'tiny', prompt: 'Hi' }, form],
  ['fields of a form with a charset', { model: 'tiny' }, 'Application/X-WWW-Form-URLencoded;charset=utf-8'],
  ['JSON as the name of a field', { '{"model":"tiny"}': '' }, form],
  ['JSON as the name of nested fields', { '{"messages":': { '{"role":"user"}': '' } }, form],
  ['JSON cut up at its characters', { 3: '', ' {"model":"1': '2', '"&a': { b: '}' } }, form],
])('%s from a form parser are rejected as a set-up error', (_what, parsed, contentType) => {
  expect(() => readParsedBody(parsed, contentType)).toThrow(readAsForm)
})

test('a consumed body without a parsed one is rejected as a set-up error', () => {
  expect(() => readParsedBody(undefined)).toThrow(
    expect.objectContaining({
      code: 'invalid_request',
      message:
        'Earlier middleware consumed the request body and did not keep it. In the app, mount the routes before the body parser. In Nest, set bodyParser to false.',
      details: { setup: true },
    }),
  )
})

test.each([
  ['text', (json: string) => json],
  ['bytes', (json: string) => Buffer.from(json)],
])('%s from an earlier body parser are parsed with the same limits', (_what, of) => {
  expect(readParsedBody(of('{"text":"ü😀"}'), form)).toEqual({ text: 'ü😀' })
  expect(() => readParsedBody(of(nested(129)))).toThrow(tooDeep)
  expect(() => readParsedBody(of('hello'))).toThrow('The request body is not valid JSON.')
  expect(() => readParsedBody(of(''))).toThrow('The request body is not valid JSON.')
})

test('half a million objects are accepted, and more are rejected unparsed', () => {
  const many = (count: number) => Buffer.from(`[${'{},'.repeat(count)}1]`)

  expect(parseJson(many(499_999))).toHaveLength(500_000)
  expect(() => parseJson(many(500_001))).toThrow('more than 1000000')
})

test('fields and items count towards the limit, characters in strings do not', () => {
  const fields = Array.from({ length: 500_001 }, (_, i) => `"${i}":1`).join(',')
  const items = `[${'"x",'.repeat(1_000_001)}1]`

  expect(() => parseJson(Buffer.from(`{${fields}}`))).toThrow('more than 1000000')
  expect(() => parseJson(Buffer.from(items))).toThrow('more than 1000000')
  expect(parseJson(Buffer.from(JSON.stringify(':,{['.repeat(600_000))))).toHaveLength(2_400_000)
})
