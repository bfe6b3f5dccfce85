import { expect, test } from 'vitest'
import { classifyOrigin, isDirectLoopback, isLocalHost, localOrigins } from './guard.ts'

const from = (remoteAddress: string | undefined, headerNames: string[] = [], httpVersion?: string) => ({
  remoteAddress,
  httpVersion,
  headerNames: () => headerNames,
})

test.each(['127.0.0.1', '127.8.9.10', '::1', '::ffff:127.0.0.1'])('%s is a loopback address', (address) => {
  expect(isDirectLoopback(from(address))).toBe(true)
})

test.each([
  undefined,
  '',
  '192.168.1.5',
  '0.0.0.0:11434',
  '[fe80::1]',
  '10.0.0.1',
  '::ffff:192.168.1.5',
  'fe80::1',
  '2001:db8::1',
  'localhost',
])('%j is not a loopback address', (address) => {
  expect(isDirectLoopback(from(address))).toBe(false)
})

test.each([
  ...['forwarded', 'via', 'x-forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-anything'],
  ...['x-real-ip', 'x-client-ip', 'true-client-ip', 'cf-connecting-ip', 'cf-ray', 'cdn-loop'],
])('a request with %s came through a proxy', (header) => {
  expect(isDirectLoopback(from('127.0.0.1', ['host', header, 'accept']))).toBe(false)
})

test('a request with only headers of clients is direct', () => {
  const ofClients = [
    'host',
    'user-agent',
    'x-stainless-os',
    'x-api-key',
    'sec-fetch-site',
    'x-forward',
    'viable',
  ]

  expect(isDirectLoopback(from('127.0.0.1', ofClients))).toBe(true)
})

test.each([
  ['0.9', false],
  ['1.0', false],
  ['1.1', true],
  ['2.0', true],
  [undefined, true],
])('a request over HTTP/%s is direct: %s', (version, isDirect) => {
  expect(isDirectLoopback(from('127.0.0.1', [], version))).toBe(isDirect)
})

test.each([
  undefined,
  '',
  'localhost',
  'localhost:11434',
  'LOCALHOST',
  'app.localhost:80',
  'printer.local',
  'host.docker.internal:11434',
  '127.0.0.1:1',
  '[::1]:1',
  '192.168.1.5',
])('the host %s is local', (host) => {
  expect(isLocalHost(host)).toBe(true)
})

test.each([
  'evil.example',
  'evil.example:11434',
  '8.8.8.8',
  '[2606:4700::1111]:80',
  'localhost.evil.example',
  'notlocalhost',
  'a:b:c',
  '[::1',
  '127.0.0.1.evil.example',
  'local',
  'evillocal',
  'internal.evil.example',
])('the host %s is not local', (host) => {
  expect(isLocalHost(host)).toBe(false)
})

const page = (origin: string | undefined, host = 'localhost:11434', site?: string) => ({
  header: (name: string) => ({ origin, host, 'sec-fetch-site': site })[name],
})
const classify = (
  request: Parameters<typeof classifyOrigin>[0],
  allowed: readonly string[] = [],
  trustsFetchMetadata = true,
) => classifyOrigin(request, { allowed, trustsFetchMetadata })

test('a request without an Origin header is not from a web page', () => {
  expect(classify(page(undefined), [])).toEqual({ kind: 'none' })
})

test('a page of the same host and port is the same origin', () => {
  expect(classify(page('http://localhost:11434'), [])).toEqual({ kind: 'same' })
  expect(classify(page('https://api.example', 'api.example'), [])).toEqual({ kind: 'same' })
})

test.each([
  'http://localhost:5173',
  'https://localhost',
  'http://127.0.0.1:3000',
  'http://[::1]:8080',
  'app://obsidian.md',
  'file://',
  'tauri://localhost',
  'vscode-webview://1a2b',
])('a page from %s is local', (origin) => {
  expect(classify(page(origin), localOrigins)).toEqual({ kind: 'allowed', origin })
})

test.each([
  'https://evil.example',
  'null',
  'http://localhost.evil.example',
  'chrome-extension://abc',
  'https://app://',
])('a page from %s is not local', (origin) => {
  expect(classify(page(origin), localOrigins)).toEqual({ kind: 'refused', origin })
})

test('`*` in a pattern matches any text, and a dot only a dot', () => {
  const allowed = ['https://*.example.com']

  expect(classify(page('https://app.example.com'), allowed).kind).toBe('allowed')
  expect(classify(page('https://app.exampleXcom'), allowed).kind).toBe('refused')
  expect(classify(page('https://app.example.com.evil.example'), allowed).kind).toBe('refused')
})

test('the default port of the scheme does not matter, and other ports do', () => {
  expect(classify(page('https://api.example', 'api.example:443'))).toEqual({ kind: 'same' })
  expect(classify(page('http://api.example', 'api.example:80'))).toEqual({ kind: 'same' })
  for (const host of ['api.example:80', 'api.example:8443', 'x@api.example:1', '', 'api.example evil'])
    expect(classify(page('https://api.example', host)).kind).toBe('refused')
})

test('only pages of http and https can be of the same origin', () => {
  for (const origin of ['null', 'app://api.example', 'api.example', 'https://'])
    expect(classify(page(origin, 'api.example')).kind, origin).toBe('refused')
})

test('a host that a trusted proxy reports replaces the Host header', () => {
  const behindProxy = (origin: string) => ({ ...page(origin, 'localhost:3000'), host: 'app.example' })

  expect(classify(behindProxy('https://app.example'))).toEqual({ kind: 'same' })
  expect(classify(behindProxy('http://localhost:3000')).kind).toBe('refused')
})

test('a browser that reports the same origin is believed where the Host header may be rewritten', () => {
  const request = page('https://app.example', 'localhost:3000', 'same-origin')

  expect(classify(request, [], true)).toEqual({ kind: 'same' })
  expect(classify(request, [], false).kind).toBe('refused')
})

test.each(['cross-site', 'same-site'])(
  'a page is not of the same origin if its browser reports %s',
  (site) => {
    const request = page('http://localhost:11434', undefined, site)

    for (const trustsFetchMetadata of [true, false])
      expect(classify(request, [], trustsFetchMetadata).kind).toBe('refused')
    expect(classify(request, localOrigins).kind).toBe('allowed')
  },
)
