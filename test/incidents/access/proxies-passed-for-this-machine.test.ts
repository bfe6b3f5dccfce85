/**
 * D-1: a proxy on the machine of a server without authentication made every client look like one of this machine.
 * Some proxies reveal themselves only by HTTP/1.0, by `via`, or by headers of their vendor.
 */
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'
import { listen } from '../../support/listen.ts'
import { type MountRoutes, mounts } from '../../support/mounts.ts'
import { plainProxy } from '../../support/plain-proxy.ts'
import { chats, post } from '../../support/served.ts'

const models = emptyFolder()

async function start(mount: MountRoutes) {
  const engine = scriptedEngine('Hello there.')
  const llm = await createLlm({ engine, models })
  const { url, close } = await listen(mount(llm))
  onTestFinished(async () => {
    await close()
    await llm.close()
  })
  return { engine, url }
}

/** Headers that proxies add, as nginx, Apache, Varnish, Envoy, Cloudflare and other networks write them. */
const proxyHeaders = {
  forwarded: 'for=203.0.113.7',
  via: '1.1 varnish',
  'cf-connecting-ip': '203.0.113.7',
  'cf-ray': '7d0e8f0a1b2c3d4e-AMS',
  'cf-anything': '1',
  'cdn-loop': 'cloudflare',
  'x-forwarded-for': '203.0.113.7',
  'x-forwarded-host': 'app.example.com',
  'x-forwarded-port': '443',
  'x-forwarded-server': 'app.example.com',
  'x-forwarded-prefix': '',
  'x-forwarded-client-cert': 'By=spiffe://cluster',
  'x-real-ip': '203.0.113.7',
  'true-client-ip': '203.0.113.7',
  'x-cluster-client-ip': '203.0.113.7',
}

describe.each(Object.entries(mounts))('in %s', (_, mount) => {
  test('a call with any header of a proxy gets a 401 in each API', async () => {
    const { engine, url } = await start(mount)

    for (const [header, value] of Object.entries(proxyHeaders))
      for (const { path, body } of chats) {
        const response = await post(url + path, body, { [header]: value })
        expect([header, path, response.status]).toEqual([header, path, 401])
      }
    expect(engine.requests).toEqual([])
  })

  test('a call through a proxy that adds `via` gets a 401, and a direct call is answered', async () => {
    const { url } = await start(mount)
    const proxy = await plainProxy(url, (headers) => ({ ...headers, via: '1.1 proxy' }))
    onTestFinished(proxy.close)
    const [chat] = chats as [(typeof chats)[number]]

    expect((await post(proxy.url + chat.path, chat.body)).status).toBe(401)
    expect((await post(url + chat.path, chat.body)).status).toBe(200)
  })

  test('a call over HTTP/1.0 gets a 401', async () => {
    const { engine, url } = await start(mount)

    for (const { path, body } of chats) {
      const [json, { port }] = [JSON.stringify(body), new URL(url)]
      const socket = connect(Number(port), '127.0.0.1')
      socket.write(
        `POST ${path} HTTP/1.0\r\nhost: localhost\r\ncontent-length: ${json.length}\r\nanthropic-version: 2023-06-01\r\n\r\n${json}`,
      )
      expect(await text(socket)).toMatch(/^HTTP\/1\.1 401 /)
    }
    expect(engine.requests).toEqual([])
  })
})
