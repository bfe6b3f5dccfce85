/**
 * DNS rebinding. A host name resolved to a public address for the check and to a private one for the
 * connection.
 */
import type { LookupFunction } from 'node:net'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { GuardedFetch } from '../../../packages/core/src/models/registry/guarded-fetch.ts'
import { SmallRegistry } from '../../support/registry.ts'

let inside: SmallRegistry
beforeAll(async () => {
  inside = await SmallRegistry.start()
})
afterEach(() => inside.forget())
afterAll(() => inside.close())

/** A public address that no network routes: IANA has not assigned it. */
const nowhere = '2d00::1'
const { signal } = new AbortController()

/** Returns these addresses one after the other, the last one repeatedly, and records what it has returned. */
function changingLookup(...addresses: readonly [string, ...string[]]) {
  const given: string[] = []
  const lookup: LookupFunction = (_, options, callback) => {
    const address = addresses[Math.min(given.length, addresses.length - 1)] as string
    const family = address.includes(':') ? 6 : 4
    given.push(address)
    if (options.all) callback(null, [{ address, family }])
    else callback(null, address, family)
  }
  return { lookup, given }
}

test('the address of each connection is checked, also when the name resolved to a public one before', async () => {
  const { lookup, given } = changingLookup(nowhere, '127.0.0.1')
  const guard = new GuardedFetch({ privateHosts: [], lookup })
  const url = new URL(`https://registry.example:${new URL(inside.url).port}/`)

  await expect(guard.fetch(url, { signal: AbortSignal.timeout(300) })).rejects.toThrow()
  await expect(guard.fetch(url, { signal })).rejects.toMatchObject({
    code: 'permission',
    message: 'registry.example: the address is not public',
  })

  expect(given).toEqual([nowhere, '127.0.0.1'])
  expect(inside.requests).toEqual([])
})

test('the address of a redirect target is checked, too', async () => {
  const { port } = new URL(inside.url)
  const { lookup } = changingLookup('127.0.0.1')
  // The first host may be private. The redirect leads to a name that may not.
  const guard = new GuardedFetch({ privateHosts: [`first.example:${port}`], lookup })
  inside.intercept(/start/, (_, response) =>
    response.writeHead(302, { location: `https://second.example:${port}/inside` }).end(),
  )

  const fetched = guard.fetch(new URL(`http://first.example:${port}/start`), { signal, insecure: true })

  await expect(fetched).rejects.toMatchObject({ code: 'permission' })
  expect(inside.requests.map(({ path }) => path)).toEqual(['/start'])
})
