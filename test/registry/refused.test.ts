/** Hosts that a pull must never contact, whatever the model name, DNS or a redirect contains. */
import type { LookupFunction } from 'node:net'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { noiseBlob, SmallRegistry } from '../support/registry.ts'
import { all, madeModel, pull, put, storeFor } from '../support/transfers.ts'

let registry: SmallRegistry
let inside: SmallRegistry
const weights = noiseBlob('refused', 100_000)
beforeAll(async () => {
  registry = await SmallRegistry.start()
  inside = await SmallRegistry.start()
  for (const one of [registry, inside]) put(one, 'library/tiny', madeModel(weights))
})
afterEach(() => {
  registry.forget()
  inside.forget()
})
afterAll(() => Promise.all([registry.close(), inside.close()]))

const { signal } = new AbortController()
const here: LookupFunction = (_, options, callback) => {
  if (options.all) callback(null, [{ address: '127.0.0.1', family: 4 }])
  else callback(null, '127.0.0.1', 4)
}

test.each([
  '',
  'a b',
  '../../etc/passwd',
  'tiny:',
  'https://',
  '/tiny',
  'a/b/c/d/e',
  'registry.example/a/../b',
  'tiny\0',
])('a pull rejects an invalid model name before its first event: %j', async (name) => {
  const events = storeFor([registry.host]).transfers.pull(name, { signal })

  await expect(events.next()).rejects.toMatchObject({
    code: 'invalid_request',
    message: 'invalid model name',
  })
})

test.each(['127.1', '2130706433', '0x7f000001', 'localhost', 'metadata.google.internal', '169.254.169.254'])(
  'a pull rejects a registry that is not allowed before its first event: %s',
  async (host) => {
    const { port } = new URL(inside.url)
    const store = storeFor([registry.host], { hosts: ['registry.example'] })

    for (const insecure of [true, false]) {
      const events = store.transfers.pull(`${host}:${port}/library/tiny`, { signal, insecure })
      await expect(events.next()).rejects.toMatchObject({ code: 'permission' })
    }

    expect(inside.requests).toEqual([])
  },
)

test('a pull never contacts a public registry over http', async () => {
  const events = storeFor([], { hosts: ['registry.example'], lookup: here }).transfers.pull(
    'registry.example/library/tiny',
    { signal, insecure: true },
  )

  await expect(events.next()).rejects.toMatchObject({
    code: 'permission',
    message: expect.stringContaining('insecure protocol http'),
  })
})

test('a pull never contacts a public registry whose name resolves to a private address', async () => {
  const store = storeFor([], { hosts: ['registry.example'], lookup: here })

  await expect(all(store.transfers.pull('registry.example/library/tiny', { signal }))).rejects.toMatchObject({
    code: 'permission',
    message: 'pull model manifest: registry.example: the address is not public',
  })
})

test.each([
  ['the manifest', /^GET .*manifests/],
  ['a blob', /^GET .*blobs/],
])('a redirect of %s to another private address ends the pull at once', async (_, what) => {
  const moved = new RegExp(what)
  registry.intercept(moved, (request, response) =>
    response.writeHead(307, { location: `${inside.url}${request.url}` }).end(),
  )

  await expect(all(pull(storeFor([registry.host]), `${registry.host}/library/tiny`))).rejects.toMatchObject({
    code: 'permission',
  })

  expect(inside.requests).toEqual([])
  expect(registry.requests.filter(({ path }) => path.includes(weights.digest)).length).toBeLessThanOrEqual(1)
})
