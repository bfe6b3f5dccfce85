/** Pushes to failing registries. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type ModelName, parseModelName } from '../../packages/core/src/models/ollama-store/name.ts'
import { noiseBlob, SmallRegistry } from '../support/registry.ts'
import { all, impatientPace, madeModel, pull, push, type Store, storeFor } from '../support/transfers.ts'

let registry: SmallRegistry
beforeAll(async () => {
  registry = await SmallRegistry.start()
})
afterEach(() => registry.forget())
afterAll(() => registry.close())

let made = 0
/** Uploads in three parts. */
async function madeStore(): Promise<readonly [store: Store, name: string]> {
  const store = storeFor([registry.host], { policy: { ...impatientPace, partBytes: 1_000_000 } })
  const model = madeModel(noiseBlob(`pushed ${made}`, 3_000_000), `You are number ${made}.`)
  for (const blob of [...model.layers, model.config])
    await store.blobs.add(Buffer.concat([...blob.bytes(0, blob.sizeBytes)]))
  const name = `${registry.host}/team/pushed${made++}`
  await store.manifests.write(parseModelName(name) as ModelName, model.manifest)
  return [store, name]
}
const starts = () =>
  registry.requests
    .filter(({ method, headers }) => method === 'PATCH' && Number(headers['content-length']) > 1_000)
    .map(({ headers }) => headers['content-range'])

async function expectPushed(name: string): Promise<void> {
  const other = storeFor([registry.host])
  expect((await all(pull(other, name))).at(-1)).toEqual({ status: 'success' })
}

test('after an error the push resumes at the registry’s offset', async () => {
  const [store, name] = await madeStore()
  let parts = 0
  registry.intercept(/^PATCH/, (_, response) => ++parts === 2 && response.writeHead(503).end('busy'))

  await all(push(store, name))

  await expectPushed(name)
  expect(starts()).toEqual(['0-999999', '1000000-1999999', '1000000-1999999', '2000000-2999999'])
})

test('an upload that the registry has dropped starts again', async () => {
  const [store, name] = await madeStore()
  let parts = 0
  registry.intercept(/^PATCH/, (_, response) => ++parts === 2 && response.destroy())
  registry.intercept(/^GET .*uploads/, (_, response) => response.writeHead(404).end())

  await all(push(store, name))

  await expectPushed(name)
  expect(starts()).toEqual(['0-999999', '1000000-1999999', '0-999999', '1000000-1999999', '2000000-2999999'])
})

test('a registry that stops reading gets the part again', async () => {
  const [store, name] = await madeStore()
  let parts = 0
  // Never read.
  registry.intercept(/^PATCH/, () => ++parts === 1)

  await all(push(store, name))

  await expectPushed(name)
})

test('a rejected push ends at once', async () => {
  const [store, name] = await madeStore()
  registry.intercept(/^PATCH/, (_, response) => response.writeHead(403).end('not yours'))

  await expect(all(push(store, name))).rejects.toMatchObject({ code: 'upstream', message: '403: not yours' })

  expect(starts()).toHaveLength(1)
})

test('a push ends after repeated failures', async () => {
  const [store, name] = await madeStore()
  registry.intercept(/^PATCH/, (_, response) => response.writeHead(500).end('kaput'))

  await expect(all(push(store, name))).rejects.toMatchObject({ message: 'max retries exceeded: 500: kaput' })

  expect(starts()).toHaveLength(impatientPace.maxFailures)
})

test('the registry’s error about a manifest is passed on', async () => {
  const [store, name] = await madeStore()
  registry.intercept(/^PUT .*manifests/, (_, response) => response.writeHead(501).end('Unsupported'))

  await expect(all(push(store, name))).rejects.toMatchObject({ message: '501: Unsupported' })
})
