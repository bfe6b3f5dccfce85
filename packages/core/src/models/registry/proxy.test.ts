import { expect, test } from 'vitest'
import { chooseProxy, proxyAuthorization } from './proxy.ts'

const proxies = { https: 'http://secure:3128', http: 'http://plain:3128' }
const hostOfProxy = (url: string, settings: Parameters<typeof chooseProxy>[1] = proxies) =>
  chooseProxy(new URL(url), settings)?.host

test('the protocol of a URL chooses its proxy', () => {
  expect(hostOfProxy('https://hf.co/')).toBe('secure:3128')
  expect(hostOfProxy('http://hf.co/')).toBe('plain:3128')
  expect(hostOfProxy('https://hf.co/', { http: proxies.http })).toBeUndefined()
  expect(hostOfProxy('https://hf.co/', { https: '' })).toBeUndefined()
})

test('a proxy without a scheme is an http proxy', () => {
  expect(chooseProxy(new URL('https://hf.co/'), { https: 'proxy:3128' })?.href).toBe('http://proxy:3128/')
})

test.each([
  'https://localhost/',
  'https://localhost./',
  'https://a.localhost/',
  'https://127.0.0.1/',
  'https://127.9.9.9/',
  'https://[::1]/',
])('the loopback address %s has no proxy', (url) => {
  expect(hostOfProxy(url)).toBeUndefined()
})

test.each([
  ['*', 'https://hf.co/'],
  ['hf.co', 'https://hf.co/'],
  ['HF.co', 'https://hf.CO/'],
  ['a.com, hf.co', 'https://hf.co/'],
  ['a.com hf.co', 'https://cdn.hf.co/'],
  ['.hf.co', 'https://hf.co/'],
  ['*.hf.co', 'https://cdn.hf.co/'],
  ['hf.co:443', 'https://hf.co/'],
  ['10.0.0.5', 'https://10.0.0.5:5000/'],
  ['10.0.0.5:5000', 'https://10.0.0.5:5000/'],
  ['10.0.0.0/8', 'https://10.1.2.3/'],
  ['fd00::/8', 'https://[fd00::5]/'],
  ['fd00::5', 'https://[fd00::5]/'],
  ['[fd00::5]:5000', 'https://[fd00::5]:5000/'],
])('with the exceptions %s, %s has no proxy', (none, url) => {
  expect(hostOfProxy(url, { ...proxies, none })).toBeUndefined()
})

test.each([
  ['', 'https://hf.co/'],
  [',,', 'https://hf.co/'],
  ['f.co', 'https://hf.co/'],
  ['cdn.hf.co', 'https://hf.co/'],
  ['hf.co:80', 'https://hf.co/'],
  ['10.0.0.0/8', 'https://11.0.0.1/'],
  ['10.0.0.0/99', 'https://10.0.0.1/'],
  ['10.0.0.0/8', 'https://10.example.com/'],
  ['fd00::/8', 'https://10.0.0.1/'],
  ['/', 'https://hf.co/'],
])('with the exceptions %j, %s has a proxy', (none, url) => {
  expect(hostOfProxy(url, { ...proxies, none })).toBe('secure:3128')
})

test.each(['socks5://u:secret@proxy', 'ftp://secret@proxy', 'http://[secret', '//'])(
  'the proxy %s is an error that does not repeat it',
  (https) => {
    expect(() => hostOfProxy('https://hf.co/', { https })).toThrow(
      '$HTTPS_PROXY: expected the URL of an http or https proxy.',
    )
  },
)

test.each([
  ['http://proxy', undefined],
  ['http://ann:pass@proxy', 'ann:pass'],
  ['http://ann@proxy', 'ann:'],
  ['http://ann:p%40ss%3A@proxy', 'ann:p@ss:'],
  ['http://ann:100%@proxy', 'ann:100%'],
])('credentials of %s', (proxy, credentials) => {
  const expected = credentials && `Basic ${Buffer.from(credentials).toString('base64')}`
  expect(proxyAuthorization(new URL(proxy))).toBe(expected)
})
