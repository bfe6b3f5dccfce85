import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { listen } from './serve.ts'

test('the server gives an upload any time, headers about a minute, and idle connections more than most balancers', async () => {
  const server = await listen((_req, res) => void res.end('hello'), '127.0.0.1', 0)
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo

  expect(await (await fetch(`http://127.0.0.1:${port}`)).text()).toBe('hello')
  const { requestTimeout, keepAliveTimeout, headersTimeout } = server
  expect([requestTimeout, keepAliveTimeout, headersTimeout]).toEqual([0, 65_000, 66_000])
})
