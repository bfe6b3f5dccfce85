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
/** Creates a store with a model that is pushed in three parts. */
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

test('after a server error, a push resumes at the offset of the registry', async () => {
  const [store, name] = await madeStore()
  let parts = 0
  registry.intercept(/^PATCH/, (_, response) => ++parts === 2 && response.writeHead(503).end('busy'))

  await all(push(store, name))

  await expectPushed(name)
  expect(starts()).toEqual(['0-999999', '1000000-1999999', '1000000-1999999', '2000000-2999999'])
})

test('a push starts an upload again that the registry has dropped', async () => {
  const [store, name] = await madeStore()
  let parts = 0
  registry.intercept(/^PATCH/, (_, response) => ++parts === 2 && response.destroy())
  registry.intercept(/^GET .*uploads/, (_, response) => response.writeHead(404).end())

  await all(push(store, name))

  await expectPushed(name)
  expect(starts()).toEqual(['0-999999', '1000000-1999999', '0-999999', '1000000-1999999', '2000000-2999999'])
})

test('a push sends a part again after the registry stopped reading', async () => {
  const [store, name] = await madeStore()
  let parts = 0
  // The registry never reads the first part.
  registry.intercept(/^PATCH/, () => ++parts === 1)

  await all(push(store, name))

  await expectPushed(name)
})

test('a push ends at once when the registry responds with 403', async () => {
  const [store, name] = await madeStore()
  registry.intercept(/^PATCH/, (_, response) => response.writeHead(403).end('not yours'))

  await expect(all(push(store, name))).rejects.toMatchObject({ code: 'upstream', message: '403: not yours' })

  expect(starts()).toHaveLength(1)
})

test('a push ends after the maximum number of server errors', async () => {
  const [store, name] = await madeStore()
  registry.intercept(/^PATCH/, (_, response) => response.writeHead(500).end('kaput'))

  await expect(all(push(store, name))).rejects.toMatchObject({ message: 'max retries exceeded: 500: kaput' })

  expect(starts()).toHaveLength(impatientPace.maxFailures)
})

test('the error of a push contains the error text of the registry about the manifest', async () => {
  const [store, name] = await madeStore()
  registry.intercept(/^PUT .*manifests/, (_, response) => response.writeHead(501).end('Unsupported'))

  await expect(all(push(store, name))).rejects.toMatchObject({ message: '501: Unsupported' })
})
