import type { LookupAddress } from 'node:dns'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo, LookupFunction } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { GuardedFetch, readLimitedBody } from './guarded-fetch.ts'

let server: Server
let answer: RequestListener
let asked: string[]
let port: number
beforeEach(async () => {
  asked = []
  answer = (_, response) => response.end('secret')
  server = createServer((request, response) => {
    asked.push(`${request.method} ${request.headers.host}${request.url}`)
    answer(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  port = (server.address() as AddressInfo).port
})
afterEach(() => {
  server.closeAllConnections()
  return new Promise((resolve) => server.close(resolve))
})

const { signal } = new AbortController()
/** Resolves each name to the given addresses. */
const resolvingTo =
  (...addresses: readonly string[]): LookupFunction =>
  (_, options, callback) => {
    const found = addresses.map(
      (address): LookupAddress => ({ address, family: address.includes(':') ? 6 : 4 }),
    )
    if (options.all) callback(null, found)
    else callback(null, found[0]?.address ?? '', found[0]?.family)
  }
/** Only the test's server is a private host. */
const guard = (lookup?: LookupFunction) =>
  new GuardedFetch({ privateHosts: [`127.0.0.1:${port}`], ...(lookup && { lookup }) })
const here = () => new URL(`http://127.0.0.1:${port}/start`)
const insecure = { signal, insecure: true }

describe('a private address', () => {
  const spellings = [
    ...[
      '127.0.0.1',
      '2130706433',
      '0x7f000001',
      '017700000001',
      '127.1',
      '0x7f.1',
      '0177.0.0.1',
      '127.0.0.1.',
    ],
    ...['%31%32%37.0.0.1', '１２７.0.0.1', '0', '[::1]', '[::]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]'],
    ...['[0:0:0:0:0:ffff:7f00:0001]', '[64:ff9b::7f00:1]', '[2002:7f00:1::]', '[fe80::1]', '[fd00::1]'],
    ...['169.254.169.254', '0xa9fea9fe', '10.0.0.1', '192.168.0.1', '172.16.0.1', '100.100.100.200'],
  ]

  test.each(spellings)('is blocked in a URL: %s', async (host) => {
    const url = new URL(`https://${host}:${port}/`)

    const strict = new GuardedFetch({ privateHosts: [] })

    await expect(strict.fetch(url, { signal })).rejects.toMatchObject({ code: 'permission' })

    expect(asked).toEqual([])
  })

  test.each(spellings)('is blocked as a redirect target: %s', async (host) => {
    // A header can contain only ASCII characters.
    const location = `https://${host.replace(/[^ -~]/g, encodeURIComponent)}/latest/meta-data`
    answer = (_, response) => response.writeHead(302, { location }).end()

    await expect(guard().fetch(here(), insecure)).rejects.toMatchObject({ code: 'permission' })

    expect(asked).toHaveLength(1)
  })

  test.each([
    [['127.0.0.1']],
    [['::1']],
    [['::ffff:127.0.0.1']],
    [['169.254.169.254']],
    // One private address is enough to block the name.
    [['8.8.8.8', '10.0.0.1']],
  ])('is blocked where a name resolves to it: %s', async (addresses) => {
    const url = new URL(`https://registry.example:${port}/`)

    await expect(guard(resolvingTo(...addresses)).fetch(url, { signal })).rejects.toMatchObject({
      code: 'permission',
      message: 'registry.example: the address is not public',
    })

    expect(asked).toEqual([])
  })

  test('is blocked for localhost with the system resolver', async () => {
    await expect(guard().fetch(new URL(`https://localhost:${port}/`), { signal })).rejects.toMatchObject({
      code: 'permission',
    })
  })

  test('is allowed for a private host and port', async () => {
    const answered = await guard().fetch(here(), insecure)

    expect((await readLimitedBody(answered, 100)).toString()).toBe('secret')
    const elsewhere = new URL('http://127.0.0.1:1/')
    await expect(guard().fetch(elsewhere, insecure)).rejects.toMatchObject({ code: 'permission' })
  })

  test('is allowed for a private host name', async () => {
    const named = new GuardedFetch({
      privateHosts: [`registry.example:${port}`],
      lookup: resolvingTo('127.0.0.1'),
    })

    await named.fetch(new URL(`http://registry.example:${port}/x`), insecure).then(({ body }) => body.dump())

    expect(asked).toEqual([`GET registry.example:${port}/x`])
  })
})

test.each([
  ['registry.example:443', 'https://registry.example/'],
  ['registry.example', 'https://registry.example:443/'],
  ['Registry.Example', 'http://registry.example/'],
  ['registry.example:80', 'http://registry.example/'],
  ['[::1]:443', 'https://[::1]/'],
])('the private host %s allows %s', async (host, url) => {
  const lookup = resolvingTo('127.0.0.1')
  // The connection may fail: the test asserts only that the request was not blocked.
  const fetched = new GuardedFetch({ privateHosts: [host], lookup }).fetch(new URL(url), insecure)

  const code = await fetched.then(
    ({ body }) => body.dump().then(() => 'answered'),
    (error) => error.code,
  )
  expect(code).not.toBe('permission')
})

test('another port of a private host is not allowed', () => {
  const named = new GuardedFetch({ privateHosts: ['one.example:443', 'two.example'] })

  const hosts = ['one.example:443', 'one.example', 'one.example:80', 'two.example:80', 'two.example:5000']
  expect(hosts.filter((host) => named.isPrivateHost(host))).toEqual([
    'one.example:443',
    'one.example',
    'two.example:80',
  ])
})

test('a redirect from another host does not reach a private host', async () => {
  const named = new GuardedFetch({
    privateHosts: [`registry.example:${port}`, `127.0.0.1:${port}`],
    lookup: resolvingTo('127.0.0.1'),
  })
  answer = (_, response) =>
    response.writeHead(302, { location: `http://registry.example:${port}/secret` }).end()

  await expect(named.fetch(here(), insecure)).rejects.toMatchObject({ code: 'permission' })

  expect(asked).toEqual([`GET 127.0.0.1:${port}/start`])
})

test.each([
  ['http without `insecure`', (url: URL) => url, { signal }],
  ['http to a host that is not a private host', () => new URL('http://example.com/'), insecure],
  ['another scheme', () => new URL('file:///etc/passwd'), insecure],
  ['credentials in the URL', (url: URL) => new URL(`http://user:secret@${url.host}/`), insecure],
])('%s is rejected', async (_, url, request) => {
  await expect(guard().fetch(url(here()), request)).rejects.toMatchObject({ code: 'permission' })

  expect(asked).toEqual([])
})

test.each([
  'http://example.com/',
  'ftp://example.com/',
  'file:///etc/passwd',
  'data:text/plain,x',
  'https://a:b@example.com/',
])('a redirect to %s is blocked', async (location) => {
  answer = (_, response) => response.writeHead(302, { location }).end()

  await expect(guard().fetch(here(), insecure)).rejects.toMatchObject({ code: 'permission' })
})

test('endless redirects are stopped', async () => {
  answer = (_, response) => response.writeHead(307, { location: '/again' }).end('x'.repeat(100_000))

  await expect(guard().fetch(here(), insecure)).rejects.toMatchObject({ code: 'upstream' })

  expect(asked).toHaveLength(11)
})

test('a request with a body follows no redirect', async () => {
  answer = (_, response) => response.writeHead(307, { location: '/again' }).end()

  const { status, body } = await guard().fetch(here(), { ...insecure, method: 'PUT', body: Buffer.from('x') })
  await body.dump()

  expect(status).toBe(307)
  expect(asked).toHaveLength(1)
})

test('the error for an unreachable server omits the query of the URL', async () => {
  const gone = new URL(`http://127.0.0.1:${port}/path?signature=secret`)
  await new Promise((resolve) => server.close(resolve))

  await expect(guard().fetch(gone, insecure)).rejects.toMatchObject({
    code: 'upstream',
    message: `Get "http://127.0.0.1:${port}/path": connect ECONNREFUSED 127.0.0.1:${port}`,
  })
})
