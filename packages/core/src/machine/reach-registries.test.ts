import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { listen } from '../../../../test/support/listen.ts'
import { reachRegistries } from './reach-registries.ts'

const reach = async (host: string) =>
  (await reachRegistries({ store: { registries: [], privateRegistries: [host] } }, 500))[0]?.problem

test('a registry that requires credentials answers, also over http if it is private', async () => {
  const { url, close } = await listen((_request, response) => response.writeHead(401).end())
  onTestFinished(close)

  expect(await reach(new URL(url).host)).toBeUndefined()
})

test('names why a registry cannot be reached', async () => {
  const server = createServer((socket) => socket.resume()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`

  expect(await reach(host)).toBe('no answer within 0.5 s')
  server.close()
  await once(server, 'close')
  expect(await reach(host)).toContain('ECONNREFUSED')
})
