import { expect, test } from 'vitest'
import { type FleetOptions, resolveFleetOptions } from './options.ts'

const replicas = ['http://a:8000/v1', 'http://b:8000', 'http://a:8000/']

test('each replica has the options of an upstream engine, and counts once', async () => {
  const { membership } = resolveFleetOptions({ replicas, server: 'vllm', stallTimeoutMs: 5 })
  const list = await membership.read()

  expect(list.map(({ baseUrl }) => baseUrl.href)).toEqual(['http://a:8000/', 'http://b:8000/'])
  expect(list[0]).toMatchObject({ server: 'vllm', stallTimeoutMs: 5 })
  expect(new Set(list.map(({ identity }) => identity)).size).toBe(1)
})

test.each<[Partial<FleetOptions>, string | undefined]>([
  [{ server: 'vllm' }, '/health'],
  [{ server: 'modelmount' }, '/v1/models'],
  [{}, '/v1/models'],
  [{ api: 'ollama' }, '/api/tags'],
  [{ api: 'anthropic' }, '/v1/models'],
  [{ api: 'modelmount' }, '/modelmount/v1/models'],
  [{ health: { path: '/livez' } }, '/livez'],
  [{ health: false }, undefined],
])('with %j, probes ask for %s', (options, path) => {
  expect(resolveFleetOptions({ replicas, ...options }).probe?.path).toBe(path)
})

test('a DNS name has a replica per address, and those of IPv6 only if there is no other', async () => {
  const { membership } = resolveFleetOptions({ replicas: { dns: 'localhost', port: 80 }, refreshMs: 200 })
  const list = await membership.read()

  expect(membership.refreshMs).toBe(200)
  expect(list.map(({ baseUrl }) => baseUrl.href)).toEqual([
    expect.stringMatching(/^http:\/\/(127\.0\.0\.1|\[::1\])\/$/),
  ])
})

test('a list that is read again is checked each time', async () => {
  const { membership } = resolveFleetOptions({ replicas: () => ['ftp://a'] })

  await expect(membership.read()).rejects.toThrow(
    'Expected `url` to begin with http:// or https://, got ftp:',
  )
})

test.each<[unknown, string]>([
  [{}, 'Expected `replicas` to be an object'],
  [{ replicas: [] }, 'Expected `replicas` to have at least one URL'],
  [{ replicas: ['nowhere'] }, 'Expected `url` to be a URL'],
  [{ replicas: ['http://user:secret@a'] }, 'Expected `url` without a user name'],
  [{ replicas: { dns: 'a b', port: 1 } }, 'Expected `replicas.dns` to be a name, got a b (string)'],
  [{ replicas: { dns: 'a' } }, 'Expected `replicas.port` to be set'],
  [{ replicas: { dns: 'a', port: 0 } }, 'Expected `replicas.port` to be a whole number from 1 to 65535'],
  [{ replicas: { dns: 'a', port: 1, family: 5 } }, 'Expected `replicas.family` to be 4 or 6, got 5 (number)'],
  [{ replicas: { dns: 'a', port: 1, host: 'b' } }, 'Unknown option `replicas.host`'],
  [{ replicas, url: 'http://a' }, 'Unknown option `url`, expected `replicas`'],
  [{ replicas, balanced: true }, 'Unknown option `balanced`'],
  [{ replicas, server: 'nginx' }, 'Expected `server` to be one of'],
  [
    { replicas, balance: 'random' },
    'Expected `balance` to be one of prefix, least-tokens, round-robin, got random',
  ],
  [{ replicas, loadFactor: 1 }, 'Expected `loadFactor` to be a number from 1.05 to 100, got 1 (number)'],
  [{ replicas, retryBudget: 20 }, 'Expected `retryBudget` to be a number from 0 to 1, got 20 (number)'],
  [{ replicas, maxRetries: -1 }, 'Expected `maxRetries` to be a whole number from 0 to 10'],
  [{ replicas, health: true }, 'Expected `health` to be an object'],
  [{ replicas, health: { url: '/' } }, 'Unknown option `health.url`'],
  [{ replicas, health: { path: 'health' } }, 'Expected `health.path` to begin with /, got health (string)'],
])('rejects %j', (options, message) => {
  expect(() => resolveFleetOptions(options as FleetOptions)).toThrow(message)
})
