import { expect, test } from 'vitest'
import { isLoopback, parseHost, serverUrl } from './host.ts'

test.each([
  ['', '127.0.0.1', 11_434],
  ['  ', '127.0.0.1', 11_434],
  ['0.0.0.0', '0.0.0.0', 11_434],
  ['0.0.0.0:8080', '0.0.0.0', 8_080],
  [':8080', '127.0.0.1', 8_080],
  [':0', '127.0.0.1', 0],
  ['my-host.local', 'my-host.local', 11_434],
  ['http://localhost', 'localhost', 11_434],
  ['http://localhost:1234/', 'localhost', 1_234],
  ['https://example.com:443/some/path', 'example.com', 443],
  ['[::1]', '::1', 11_434],
  ['[::]:80', '::', 80],
  ['http://[fe80::1]:9000', 'fe80::1', 9_000],
  [' localhost:65535 ', 'localhost', 65_535],
])('%j is the host %s and the port %i', (text, host, port) => {
  expect(parseHost(text)).toEqual({ host, port })
})

test.each(['localhost:65536', 'localhost:http', 'localhost:-1', 'localhost:', 'a:b:1', '[::1'])(
  '%j is refused by name',
  (text) => {
    expect(() => parseHost(text)).toThrow(`Expected OLLAMA_HOST to be host:port, got '${text}'`)
  },
)

test.each([
  ['', 'http://127.0.0.1:11434'],
  [':8080', 'http://127.0.0.1:8080'],
  ['my-host.local', 'http://my-host.local:11434'],
  ['0.0.0.0:80', 'http://127.0.0.1:80'],
  ['[::]:80', 'http://[::1]:80'],
  ['http://localhost', 'http://localhost:11434'],
  ['https://example.com', 'https://example.com:443'],
  ['https://example.com:8443/llm/', 'https://example.com:8443/llm'],
  ['http://[fe80::1]:9000', 'http://[fe80::1]:9000'],
])('%j becomes the URL %s', (text, url) => {
  expect(serverUrl(text)).toBe(url)
})

test.each([
  ['', 'http://127.0.0.1:8080'],
  ['gpu:1', 'http://gpu:8080'],
  ['https://example.com/llm', 'https://example.com:8080/llm'],
])('a chosen port replaces that of %j', (text, url) => {
  expect(serverUrl(text, 8_080)).toBe(url)
})

test.each(['localhost', '127.0.0.1', '127.1.2.3', '::1'])('%s is loopback', (host) => {
  expect(isLoopback(host)).toBe(true)
})

test.each([
  '0.0.0.0',
  '::',
  '192.168.1.7',
  '1.127.0.1',
  'example.com',
  'localhost.example.com',
  '127.example.com',
])('%s is not loopback', (host) => {
  expect(isLoopback(host)).toBe(false)
})
