import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { callerAt, closingSignals, listen } from './serve.ts'

test('the server gives an upload any time, headers about a minute, and idle connections more than most balancers', async () => {
  const server = await listen((_req, res) => void res.end('hello'), '127.0.0.1', 0)
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo

  expect(await (await fetch(`http://127.0.0.1:${port}`)).text()).toBe('hello')
  const { requestTimeout, keepAliveTimeout, headersTimeout } = server
  expect([requestTimeout, keepAliveTimeout, headersTimeout]).toEqual([0, 65_000, 66_000])
})

test('without authentication, each client address is a tenant, and a subnet of IPv6 is one', () => {
  const tenantAt = (ip: string) => callerAt({ ip }).tenant

  expect(callerAt({ ip: '192.0.2.1' }).id).toBe(callerAt({ ip: '192.0.2.2' }).id)
  expect(tenantAt('192.0.2.1')).not.toBe(tenantAt('192.0.2.2'))
  expect(tenantAt('::ffff:192.0.2.1')).toBe(tenantAt('192.0.2.1'))
  expect(tenantAt('2001:db8:0:1::1')).toBe(tenantAt('2001:db8:0:1::2'))
  expect(tenantAt('2001:db8:0:1::1')).not.toBe(tenantAt('2001:db8:0:2::1'))
})

test('Ctrl-Break and a closed console end the server on Windows, and SIGTERM elsewhere', () => {
  expect(closingSignals('win32')).toEqual(['SIGINT', 'SIGTERM', 'SIGBREAK', 'SIGHUP'])
  expect(closingSignals('linux')).toEqual(['SIGINT', 'SIGTERM'])
})
