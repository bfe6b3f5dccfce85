/**
 * D-1: 175,000 servers answered anybody on the internet, since they required no key by default. The compute of
 * their owners was resold.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import { createLlm, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { scriptedEngine } from '@modelmount/core/testing'
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'
import { chats, post } from '../../support/served.ts'

const models = emptyFolder()
/** An address of this machine that is not loopback, if it has one. Calls to it come from the same address. */
const [outside] = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .filter(({ internal, family }) => !internal && family === 'IPv4')

test('without keys, a call from another address gets a 401, and one log line says what to set', async () => {
  const warnings: string[] = []
  const warn = (_: object, message = ''): void => void warnings.push(message)
  const engine = scriptedEngine('Hello there.')
  const llm = await createLlm({ engine, models, logger: { debug() {}, warn, error: warn } })
  const server = createServer(toNodeHandler(routesFor(), llm))
  let caller = '203.0.113.9'
  if (!outside)
    server.on('connection', (socket) => Object.defineProperty(socket, 'remoteAddress', { get: () => caller }))
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    await llm.close()
  })
  const { port } = server.address() as AddressInfo
  const url = `http://${outside?.address ?? '127.0.0.1'}:${port}`

  for (const { path, body } of [...chats, ...chats]) expect((await post(url + path, body)).status).toBe(401)
  for (const path of ['/v1/models', '/api/tags', '/api/ps', '/api/version'])
    expect((await fetch(url + path)).status).toBe(401)

  expect(engine.requests).toEqual([])
  expect(warnings).toEqual([expect.stringContaining("auth: 'host'")])
  caller = '127.0.0.1'
  const [chat] = chats as [(typeof chats)[number]]
  expect((await post(`http://127.0.0.1:${port}${chat.path}`, chat.body)).status).toBe(200)
})
