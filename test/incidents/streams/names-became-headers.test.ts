/** F-2: names and ids with line breaks were written into response headers, and became headers of their own. */
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'
import { chats, serveScripted } from '../../support/served.ts'

const models = emptyFolder()
const injected = 'tiny\r\nx-injected: 1\r\n\r\nHTTP/1.1 200 OK'

test('model names, ids and user names with line breaks reach no header', async () => {
  const { post, url } = await serveScripted(models, { scopes: ['inference', 'models'] })
  const requests: readonly (readonly [path: string, body: object])[] = [
    ...chats.flatMap(({ path, body }) => [
      [path, { ...body, model: injected }] as const,
      [path, { ...body, user: injected, metadata: { user_id: injected }, id: injected }] as const,
      [path, { ...body, stream: true, service_tier: injected, prompt_cache_key: injected }] as const,
    ]),
    ['/api/create', { model: injected, from: 'tiny', stream: false }],
    ['/api/copy', { source: 'tiny', destination: injected }],
    ['/api/pull', { model: injected, stream: false }],
    ['/api/show', { model: injected }],
  ]
  const answers = await Promise.all(requests.map(([path, body]) => post(path, body)))
  const paths = [
    '/v1/models/tiny%0d%0ax-injected:%201',
    '/%0d%0ax-injected:%201',
    '/api/blobs/x%0d%0ax-injected',
  ]
  for (const path of paths) answers.push(await fetch(url + path))

  for (const { headers, status } of answers) {
    expect(status).toBeLessThan(500)
    expect(headers.get('x-injected')).toBeNull()
    expect(JSON.stringify([...headers])).not.toContain('injected')
  }
})

test('only a well-formed x-request-id of the client is repeated', async () => {
  const { url, post } = await serveScripted(models)
  const others = { 'request-id': 'client-id', 'x-client-request-id': 'client-id', traceparent: 'client-id' }
  const malformed = [
    'client-id, x',
    'client-id x',
    'client-id\tx',
    'client-id%0d%0a',
    'client-id"',
    'client-id<b>',
  ]

  for (const { path, body } of chats) {
    const idOf = ({ headers }: Response) => headers.get('x-request-id') ?? headers.get('request-id')
    expect(idOf(await post(path, body, { 'x-request-id': 'proxy.42' }))).toBe('proxy.42')
    for (const given of [others, ...malformed.map((id) => ({ 'x-request-id': id }))]) {
      const [one, other] = [await post(path, body, given), await post(path, {}, given)]
      expect(JSON.stringify([...one.headers, ...other.headers]) + (await other.text())).not.toContain(
        'client-id',
      )
      expect(idOf(one)).not.toBe(idOf(other))
    }
  }
  // A client that writes a line break into a header itself ends its own request only.
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.write(
    'GET /v1/models HTTP/1.1\r\nhost: localhost\r\nx-request-id: a\rb\r\nconnection: close\r\n\r\n',
  )
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 /)
})
