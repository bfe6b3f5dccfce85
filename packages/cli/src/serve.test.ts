import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { listen } from './serve.ts'

test('the server gives an upload any time, and headers a minute', async () => {
  const server = await listen((_req, res) => void res.end('hello'), '127.0.0.1', 0)
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo

  expect(await (await fetch(`http://127.0.0.1:${port}`)).text()).toBe('hello')
  expect([server.requestTimeout, server.headersTimeout]).toEqual([0, 60_000])
})
