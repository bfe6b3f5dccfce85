/**
 * C-13: Node closed idle sockets after 5 s, and balancers, which reuse them for longer, answered with 502. The
 * host app owns its server, so our page on deployment says which limits to set.
 */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const page = fileURLToPath(new URL('../../../docs/operations/deployment.md', import.meta.url))

test('the page on deployment sets both limits of the server beyond the 60 s of most balancers', () => {
  const [, code = ''] =
    /## Behind a proxy\n.*?```js\n(.*?)```/s.exec(readFileSync(page, 'utf8').replaceAll('\r', '')) ?? []
  const settings = new Map(
    [...code.matchAll(/^server\.(\w+) = ([\d_]+)/gm)].map(([, name, ms]) => [
      name,
      Number(ms?.replaceAll('_', '')),
    ]),
  )

  const { keepAliveTimeout = 0, headersTimeout = 0 } = Object.fromEntries(settings)
  expect(keepAliveTimeout).toBeGreaterThan(60_000)
  expect(headersTimeout).toBeGreaterThan(keepAliveTimeout)
  const server = createServer()
  for (const name of settings.keys()) expect(server).toHaveProperty(name as string)
})
