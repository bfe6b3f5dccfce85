/** servers fetched the URLs of images and model galleries without a check, also inside their network. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { scriptedEngine } from '@modelmount/core/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'
import { SmallRegistry } from '../../support/registry.ts'
import { serve, serveScripted } from '../../support/served.ts'

const models = emptyFolder()
const secretFile = join(models, 'secret.png')
let inside: SmallRegistry
beforeAll(async () => {
  inside = await SmallRegistry.start()
  writeFileSync(secretFile, 'secret')
})
afterAll(() => inside.close())

const say = (content: unknown) => ({ model: 'tiny', messages: [{ role: 'user', content }] })

test('images by URL are rejected without a request, also local files and large data', async () => {
  const { engine, post } = await serveScripted(models)
  const urls = [
    `${inside.url}/latest/meta-data`,
    'http://169.254.169.254/latest/meta-data',
    `file://${secretFile}`,
    `data:image/png;base64,${'A'.repeat(1_000_000)}`,
  ]

  for (const url of urls) {
    const bodies: readonly [path: string, body: object][] = [
      ['/v1/chat/completions', say([{ type: 'image_url', image_url: { url } }])],
      ['/v1/messages', { ...say([{ type: 'image', source: { type: 'url', url } }]), max_tokens: 5 }],
      ['/v1/messages', { ...say([{ type: 'document', source: { type: 'url', url } }]), max_tokens: 5 }],
      ['/api/chat', { model: 'tiny', messages: [{ role: 'user', content: 'Look.', images: [url] }] }],
      ['/api/generate', { model: 'tiny', prompt: 'Look.', images: [url] }],
    ]
    for (const [path, body] of bodies) {
      const response = await post(path, body)
      const text = await response.text()
      expect([path, url.slice(0, 40), response.status]).toEqual([path, url.slice(0, 40), 400])
      expect(text).not.toContain('secret"')
      // The error does not repeat the data.
      expect(text.length).toBeLessThan(2_000)
    }
  }
  expect(inside.requests).toEqual([])
  expect(engine.requests).toEqual([])
})

test('images by URL are not requested for a model that sees, unless their host is allowed and public', async () => {
  const engine = scriptedEngine('Hello there.', { seesImages: true })
  const host = new URL(inside.url).host
  const { post } = await serve({ engine, models, imageHosts: [host, 'localhost', '169.254.169.254'] })
  const urls = [
    ...[
      inside.url,
      `https://${host}/`,
      'https://localhost/a.png',
      'https://169.254.169.254/latest/meta-data',
    ],
    ...['https://other.example/a.png', `file://${secretFile}`, secretFile],
    `data:image/png;base64,${'A'.repeat(1_000_000)}`,
  ]

  for (const url of urls) {
    const bodies: readonly [path: string, body: object][] = [
      ['/v1/chat/completions', say([{ type: 'image_url', image_url: { url } }])],
      [
        '/v1/responses',
        { model: 'tiny', input: [say([{ type: 'input_image', image_url: url }]).messages[0]] },
      ],
      ['/v1/messages', { ...say([{ type: 'image', source: { type: 'url', url } }]), max_tokens: 5 }],
      ['/api/chat', { model: 'tiny', messages: [{ role: 'user', content: 'Look.', images: [url] }] }],
    ]
    for (const [path, body] of bodies) {
      const response = await post(path, body)
      const text = await response.text()
      expect([path, url.slice(0, 40), response.status]).toEqual([path, url.slice(0, 40), 400])
      expect(text).toContain('Invalid image')
      expect(text.length).toBeLessThan(500)
    }
  }
  expect(inside.requests).toEqual([])
  expect(engine.requests).toEqual([])
})

test('an image by URL in the Responses API becomes a stand-in text, and is not requested', async () => {
  const { engine, post } = await serveScripted(models)
  const image_url = `${inside.url}/latest/meta-data`

  const response = await post('/v1/responses', {
    model: 'tiny',
    input: [{ role: 'user', content: [{ type: 'input_image', image_url }] }],
  })

  expect(response.status).toBe(200)
  expect(inside.requests).toEqual([])
  expect(JSON.stringify(engine.requests)).not.toContain(inside.url)
})

test('a model is not created from a URL or a local path', async () => {
  const { post } = await serveScripted(models, { scopes: ['inference', 'models'] })

  for (const from of [`${inside.url}/model.gguf`, `file://${secretFile}`, secretFile, './secret.png']) {
    const response = await post('/api/create', { model: 'made', from, stream: false })
    expect([from, response.status]).toEqual([from, expect.toBeOneOf([400, 403, 404])])
  }
  expect(inside.requests).toEqual([])
})
