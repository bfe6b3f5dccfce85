/** D-10: a server answered 200 to paths that it does not have, so that clients and scanners took it for another. */
import { routesFor } from '@modelmount/core'
import { expect, test } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'
import { serveScripted } from '../../support/served.ts'

const models = emptyFolder()
const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

test('each path answers other methods with a 405 that lists its own, and each other path with a 404', async () => {
  const { url, engine } = await serveScripted(models)
  const allowed = new Map<string, string[]>()
  for (const { method, path } of routesFor().routes) allowed.set(path, [...(allowed.get(path) ?? []), method])

  for (const [path, own] of allowed) {
    const at = path.replaceAll(/[:*]\w+/g, 'x')
    // Also ids of a response, which has other methods.
    if (['/v1/responses/input_tokens', '/v1/responses/compact'].includes(at)) continue
    for (const method of methods.filter((one) => !own.includes(one))) {
      const response = await fetch(url + at, { method })
      expect([method, at, response.status]).toEqual([method, at, 405])
      const named = response.headers.get('allow')?.split(', ') ?? []
      expect([at, named]).toEqual([at, expect.arrayContaining(own.filter((one) => methods.includes(one)))])
      expect(await response.text()).not.toBe('')
    }
  }
  for (const path of [
    '/v1',
    '/v1/nope',
    '/v1/chat',
    '/api/nope',
    '/api/chat/x',
    '/admin/keys',
    '/.env',
    '/x',
  ])
    for (const method of methods) {
      const response = await fetch(url + path, { method })
      expect([method, path, response.status]).toEqual([method, path, 404])
      expect(await response.text()).not.toBe('')
    }

  expect(allowed.size).toBeGreaterThan(20)
  expect(engine.requests).toEqual([])
})
