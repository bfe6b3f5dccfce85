/**
 * a digest in a pulled manifest contained `../`, became a path, and wrote any file of the server.
 * The same fault came back later in another transfer. Here each hostile digest takes every way into the store.
 */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'
import { noiseBlob, SmallRegistry } from '../../support/registry.ts'
import { type Served, serveScripted } from '../../support/served.ts'
import { madeModel, put } from '../../support/transfers.ts'

/** Contains the model folder `models`, and files beside it that no request may change. */
const around = emptyFolder()
const hex = '0'.repeat(64)
const digests = [
  'sha256:../../secret',
  `sha256:../../../${hex.slice(9)}`,
  `sha256-..%2f..%2f${hex.slice(10)}`,
  `sha256:..\\..\\${hex.slice(6)}`,
  `sha256:${hex.slice(1)}`,
  `sha256:${hex}0`,
  `sha256:${hex.slice(1)}g`,
  `sha256:${hex}\0`,
  `sha256:${hex}/../../secret`,
  `sha512:${hex}`,
]

let registry: SmallRegistry
beforeAll(async () => {
  registry = await SmallRegistry.start()
  mkdirSync(join(around, 'models'))
  writeFileSync(join(around, 'secret'), 'secret')
})
afterAll(() => registry.close())

const start = (): Promise<Served> =>
  serveScripted(join(around, 'models'), {
    scopes: ['inference', 'models'],
    store: { registries: [], privateRegistries: [registry.host] },
  })

/** All files in and around the model folder, except for blobs with a valid name. */
const filesAround = (): readonly string[] =>
  readdirSync(around, { recursive: true, encoding: 'utf8' })
    .filter((file) => !/^models.blobs(.sha256-[0-9a-f]{64})?$/.test(file))
    .sort()

/** Sends a path as it is, because `fetch` would normalise it. */
const statusOf = (url: string, method: string, path: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const outgoing = request({ hostname, port, method, path }, (response) => {
      response.resume()
      resolve(response.statusCode)
    })
    outgoing.on('error', reject).end(method === 'POST' ? 'bytes' : undefined)
  })

test('a pull rejects each digest in each place of a manifest, and requests no blob', async () => {
  const { post } = await start()
  const before = filesAround()
  const weights = noiseBlob('weights', 1_000)

  for (const digest of digests)
    for (const place of ['config', 'layer'] as const) {
      const model = madeModel(weights)
      put(registry, 'library/bad', model)
      const manifest = JSON.parse(String(model.manifest))
      const part = place === 'config' ? manifest.config : manifest.layers[0]
      part.digest = digest
      registry.addManifest('library/bad/latest', Buffer.from(JSON.stringify(manifest)))
      registry.forget()

      const response = await post('/api/pull', {
        model: `${registry.host}/library/bad`,
        insecure: true,
        stream: false,
      })

      expect([digest, place, response.status]).toEqual([digest, place, 500])
      expect(await response.json()).toEqual({ error: expect.stringContaining('sent no manifest') })
      expect(registry.requests.map(({ path }) => path)).toEqual(['/v2/library/bad/manifests/latest'])
    }
  expect(filesAround()).toEqual(before)
}, 10_000)

test('uploads, lookups and creates reject each digest, and write nothing', async () => {
  const { url, post } = await start()
  const before = filesAround()

  for (const digest of digests) {
    // A URL cannot contain a NUL or a backslash.
    const path = `/api/blobs/${digest.replace('\0', '%00').replaceAll('\\', '%5c')}`
    for (const method of ['HEAD', 'POST'])
      expect([path, await statusOf(url, method, path)]).toEqual([path, expect.toBeOneOf([400, 404])])
    for (const field of ['files', 'adapters']) {
      const response = await post('/api/create', {
        model: 'bad',
        ...(field === 'adapters' && { from: 'tiny' }),
        [field]: { 'x.gguf': digest },
        stream: false,
      })
      expect([digest, field, response.status]).toEqual([digest, field, 400])
    }
  }
  expect(filesAround()).toEqual(before)
})
