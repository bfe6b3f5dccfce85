import { expect, test } from 'vitest'
import { classifyOrigin, isDirectLoopback, isLocalHost, localOrigins } from './guard.ts'

const from = (remoteAddress: string | undefined, headers: Record<string, string> = {}) => ({
  remoteAddress,
  header: (name: string) => headers[name],
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

test.each(['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip'])(
  'a request with %s came through a proxy',
  (header) => {
    expect(isDirectLoopback(from('127.0.0.1', { [header]: '127.0.0.1' }))).toBe(false)
  },
)

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

const page = (origin: string | undefined, host = 'localhost:11434') => ({
  header: (name: string) => ({ origin, host })[name],
})

test('a request without an Origin header is not from a web page', () => {
  expect(classifyOrigin(page(undefined), [])).toEqual({ kind: 'none' })
})

test('a page of the same host and port is the same origin', () => {
  expect(classifyOrigin(page('http://localhost:11434'), [])).toEqual({ kind: 'same' })
  expect(classifyOrigin(page('https://api.example', 'api.example'), [])).toEqual({ kind: 'same' })
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
  expect(classifyOrigin(page(origin), localOrigins)).toEqual({ kind: 'allowed', origin })
})

test.each([
  'https://evil.example',
  'null',
  'http://localhost.evil.example',
  'chrome-extension://abc',
  'https://app://',
])('a page from %s is not local', (origin) => {
  expect(classifyOrigin(page(origin), localOrigins)).toEqual({ kind: 'refused', origin })
})

test('`*` in a pattern matches any text, and a dot only a dot', () => {
  const allowed = ['https://*.example.com']

  expect(classifyOrigin(page('https://app.example.com'), allowed).kind).toBe('allowed')
  expect(classifyOrigin(page('https://app.exampleXcom'), allowed).kind).toBe('refused')
  expect(classifyOrigin(page('https://app.example.com.evil.example'), allowed).kind).toBe('refused')
})

test('without a list every origin is allowed', () => {
  expect(classifyOrigin(page('https://anything.example'), undefined).kind).toBe('allowed')
})
