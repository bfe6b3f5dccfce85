import { homedir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type RegistryLogin, resolveCredentials } from './registry-credentials.ts'

const hosts = ['registry.example.com', '10.0.0.5:5000']
const ada = { username: 'ada', password: 'secret' }

test('credentials are bound to an origin, by default with https', () => {
  const given = {
    'registry.example.com:443': { ...ada, realm: 'https://auth.example.com/token' },
    'http://10.0.0.5:5000': { token: 'abc' },
  }

  expect(resolveCredentials(given, hosts, {})).toEqual({
    entries: {
      'https://registry.example.com': { ...ada, realm: 'https://auth.example.com' },
      'http://10.0.0.5:5000': { token: 'abc' },
    },
    file: undefined,
  })
})

test('the option takes the place of $REGISTRY_AUTH_FILE', () => {
  const environment = { REGISTRY_AUTH_FILE: '/run/auth.json' }

  expect(resolveCredentials(undefined, hosts, environment).file).toBe('/run/auth.json')
  expect(resolveCredentials('~/auth.json', hosts, environment).file).toBe(join(homedir(), 'auth.json'))
  expect(resolveCredentials({}, hosts, environment).file).toBeUndefined()
  expect(resolveCredentials(undefined, hosts, {}).file).toBeUndefined()
})

test.each<[given: unknown, message: string]>([
  ['', 'Expected `store.credentials` to be the path of a file, or credentials by host'],
  [[], 'Expected `store.credentials` to be an object, got []'],
  [{ 'other.example': ada }, "or `store.privateRegistries`, got 'other.example'"],
  [{ '10.0.0.5': ada }, "or `store.privateRegistries`, got '10.0.0.5'"],
  [
    { 'registry.example.com': 'secret' },
    "Expected `store.credentials['registry.example.com']` to be an object",
  ],
  [
    { 'registry.example.com': { ...ada, username: 'a:b' } },
    "['registry.example.com'].username` to be a text without",
  ],
  [{ 'registry.example.com': { username: 'ada' } }, "['registry.example.com'].password` to be a text"],
  [{ 'registry.example.com': { ...ada, realm: 'auth' } }, "['registry.example.com'].realm` to be an origin"],
  [
    { 'registry.example.com': { ...ada, auth: 'x' } },
    "Unknown option `store.credentials['registry.example.com'].auth`",
  ],
  [
    { 'registry.example.com': { token: 'secret\n' } },
    "['registry.example.com'].token` to be a text of ASCII",
  ],
])('rejects %j', (given, message) => {
  const resolving = () => resolveCredentials(given as Record<string, RegistryLogin>, hosts, {})

  expect(resolving).toThrow(message)
})
