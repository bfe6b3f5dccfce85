import { expect, test } from 'vitest'
import { checkPublicUrl, toBaseUrl } from './base-url.ts'

const called = {
  protocol: 'http',
  host: '127.0.0.1:3000',
  originalPath: '/v1/messages/batches/x',
  path: '/v1/messages/batches/x',
}

test.each([
  ['at the root', {}, 'http://127.0.0.1:3000'],
  ['below a prefix', { originalPath: `/api/llm${called.path}` }, 'http://127.0.0.1:3000/api/llm'],
  ['over TLS', { protocol: 'https', host: 'api.example.com' }, 'https://api.example.com'],
  ['on the usual port', { host: 'api.example.com:80' }, 'http://api.example.com'],
  ['on another port', { protocol: 'https', host: 'API.example.com:8443' }, 'https://api.example.com:8443'],
  ['with IPv6', { host: '[::1]:3000' }, 'http://[::1]:3000'],
  ['with a path that does not end like the route', { originalPath: '/other' }, 'http://127.0.0.1:3000'],
])('the URL of a mount point is derived from a request %s', (_what, over, url) => {
  expect(toBaseUrl({ ...called, ...over })).toBe(url)
})

test.each([
  [undefined],
  [''],
  [' '],
  ['a b'],
  ['user@evil.example'],
  ['user:secret@127.0.0.1'],
  ['evil.example/path'],
  ['evil.example?query'],
  ['evil.example#hash'],
  ['evil.example\\path'],
  ['evil.example:99999'],
  ['javascript:alert(1)'],
  ['a\r\nb'],
  ['[::1'],
])('the host %j makes no URL', (host) => {
  expect(toBaseUrl({ ...called, host })).toBeUndefined()
})

test.each([
  ['https://api.example.com/llm', 'https://api.example.com/llm'],
  ['https://api.example.com/llm/', 'https://api.example.com/llm'],
  ['http://127.0.0.1:3000', 'http://127.0.0.1:3000'],
  [undefined, undefined],
])('the public URL %s is %s in responses', (given, url) => {
  expect(checkPublicUrl(given)).toBe(url)
})

test.each([
  'api.example.com',
  '/llm',
  'ftp://api.example.com',
  'https://api.example.com/?a',
  'https://a.b/#c',
  '',
])('the public URL %j is rejected', (given) => {
  expect(() => checkPublicUrl(given)).toThrow('Expected `publicUrl` to be a URL')
})
