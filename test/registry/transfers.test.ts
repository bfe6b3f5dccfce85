/** Pulls and pushes with `SmallRegistry`, and with Docker's registry if it is installed. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ModelName, parseModelName } from '../../packages/core/src/models/ollama-store/name.ts'
import { blobOf, noiseBlob } from '../support/registry.ts'
import { all, madeModel, publish, pull, push, type Store, storeFor } from '../support/transfers.ts'
import { registries } from './registries.ts'

const weights = noiseBlob('weights', 3_000_000)
const model = madeModel(weights)
const digests = [...model.layers, model.config].map(({ digest }) => digest)
const stepStatuses = ['pulling manifest', 'verifying sha256 digest', 'writing manifest', 'success']
const named = (text: string) => parseModelName(text) as ModelName
const statuses = (events: readonly { status: string }[]) => events.map(({ status }) => status)
const label = (verb: string, digest: string) =>
  `${verb} ${digest.slice('sha256:'.length, 'sha256:'.length + 12)}`
const blobsOf = ({ root }: Store) => readdirSync(join(root, 'blobs')).sort()

describe.each(registries)('transfers with %s', (_, start) => {
  let registry: Awaited<ReturnType<typeof start>>
  let name: string
  beforeAll(async () => {
    registry = await start()
    name = `${registry.host}/library/tiny`
    await publish(registry.url, 'library/tiny', model)
  })
  afterAll(() => registry.close())

  test('a pull reports its steps, and stores the bytes of the registry', async () => {
    const store = storeFor([registry.host])

    const events = await all(pull(store, name))

    const steps = events.filter(({ digest }) => !digest)
    expect(statuses(steps)).toEqual(stepStatuses)
    for (const { digest, status } of events) if (digest) expect(status).toBe(label('pulling', digest))
    const entry = await store.manifests.find(named(name))
    expect(entry?.bytes).toEqual(model.manifest)
    const path = join(store.root, 'blobs', weights.digest.replace(':', '-'))
    expect(readFileSync(path).equals(Buffer.concat([...weights.bytes(0, weights.sizeBytes)]))).toBe(true)
    expect(blobsOf(store)).toEqual(digests.map((digest) => digest.replace(':', '-')).sort())
  })

  test('a repeated pull reports each existing blob once, as complete', async () => {
    const store = storeFor([registry.host])
    await all(pull(store, name))

    const events = await all(pull(store, name))

    expect(events).toEqual([
      { status: 'pulling manifest' },
      ...[...model.layers, model.config].map(({ digest, sizeBytes }) => ({
        status: label('pulling', digest),
        digest,
        totalBytes: sizeBytes,
        completedBytes: sizeBytes,
      })),
      ...stepStatuses.slice(1).map((status) => ({ status })),
    ])
  })

  test('a blob is downloaded in parts', async () => {
    const store = storeFor([registry.host], {
      policy: { stallMs: 5_000, pauseMs: 1, maxFailures: 6, partBytes: 100_001 },
    })

    expect(statuses(await all(pull(store, name))).at(-1)).toBe('success')
    expect(blobsOf(store)).toHaveLength(digests.length)
  })

  test('a pull of a missing model fails with code not_found', async () => {
    const store = storeFor([registry.host])

    const reported: string[] = []
    const failed = (async () => {
      for await (const { status } of pull(store, `${registry.host}/library/nope`)) reported.push(status)
    })()

    await expect(failed).rejects.toMatchObject({
      code: 'not_found',
      message: 'pull model manifest: file does not exist',
    })
    expect(reported).toEqual(['pulling manifest'])
  })

  test('a pull removes blobs that only the replaced manifest used', async () => {
    const store = storeFor([registry.host])
    const changing = `${registry.host}/library/changing`
    const [before, after] = [madeModel(blobOf('one')), madeModel(blobOf('two'), 'You are verbose.')]
    await publish(registry.url, 'library/changing', before)
    await all(pull(store, name))
    await all(pull(store, changing))
    await publish(registry.url, 'library/changing', after)

    const events = await all(pull(store, changing))

    expect(statuses(events).slice(-3)).toEqual(['writing manifest', 'removing unused layers', 'success'])
    expect(await store.blobs.find(blobOf('one').digest as never)).toBeUndefined()
    // Both models reference this blob.
    expect(await store.blobs.find(blobOf('You are terse.').digest as never)).toBeDefined()
  })

  test('a pushed model can be pulled', async () => {
    const store = storeFor([registry.host])
    await all(pull(store, name))
    const bytes = (await store.manifests.list())[0]?.bytes as Buffer
    const copy = `${registry.host}/team/copy:v1`
    await store.manifests.write(named(copy), bytes)

    const events = await all(push(store, copy))
    const again = await all(push(store, copy))

    const other = storeFor([registry.host])
    await all(pull(other, copy))
    expect((await other.manifests.list())[0]?.bytes).toEqual(bytes)
    expect(statuses(events).filter((status) => !status.startsWith('pushing '))).toEqual([
      'retrieving manifest',
      'success',
    ])
    expect(statuses(events).at(-2)).toBe('pushing manifest')
    expect(again).toEqual([
      { status: 'retrieving manifest' },
      ...[...model.layers, model.config].map(({ digest, sizeBytes }) => ({
        status: label('pushing', digest),
        digest,
        totalBytes: sizeBytes,
        completedBytes: sizeBytes,
      })),
      { status: 'pushing manifest' },
      { status: 'success' },
    ])
  })

  test('a blob is pushed in parts', async () => {
    const source = storeFor([registry.host])
    const fresh = madeModel(noiseBlob('pushed in parts', 1_000_000), 'In parts.')
    const store = storeFor([registry.host], {
      root: source.root,
      policy: { stallMs: 5_000, pauseMs: 1, maxFailures: 6, partBytes: 300_000 },
    })
    for (const blob of [...fresh.layers, fresh.config])
      await store.blobs.add(Buffer.concat([...blob.bytes(0, blob.sizeBytes)]))
    await store.manifests.write(named(`${registry.host}/team/parts`), fresh.manifest)

    await all(push(store, `${registry.host}/team/parts`))

    const other = storeFor([registry.host])
    expect(statuses(await all(pull(other, `${registry.host}/team/parts`))).at(-1)).toBe('success')
  })

  test('a push of a missing model fails with code not_found', async () => {
    const store = storeFor([registry.host])

    const reported: string[] = []
    const failed = (async () => {
      for await (const { status } of push(store, `${registry.host}/library/nope`)) reported.push(status)
    })()

    await expect(failed).rejects.toMatchObject({ code: 'not_found' })
    expect(reported).toEqual(['retrieving manifest', "couldn't retrieve manifest"])
  })
})
