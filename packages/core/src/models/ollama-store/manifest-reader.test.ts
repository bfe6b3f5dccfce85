import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { BlobStore } from './blobs.ts'
import { configMediaType, type LayerKind, manifestMediaType, maxJsonBytes, mediaTypeOf } from './manifest.ts'
import { ManifestReader } from './manifest-reader.ts'
import { ManifestStore } from './manifests.ts'
import { type ModelName, parseModelName } from './name.ts'
import type { ManifestEntry } from './store-contracts.ts'

let root: string
let blobs: BlobStore

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'described-'))
  blobs = new BlobStore([root])
})

afterEach(() => rm(root, { recursive: true }))

async function entryOf(kind: LayerKind, text: string): Promise<ManifestEntry> {
  const manifests = new ManifestStore([root], blobs)
  const [config, layer] = [await blobs.add(Buffer.from('{}')), await blobs.add(Buffer.from(text))]
  const manifest = {
    schemaVersion: 2,
    mediaType: manifestMediaType,
    config: { mediaType: configMediaType, digest: config.digest, size: config.sizeBytes },
    layers: [{ mediaType: mediaTypeOf(kind), digest: layer.digest, size: layer.sizeBytes }],
  }
  const name = parseModelName('mine') as ModelName
  await manifests.write(name, Buffer.from(JSON.stringify(manifest)))
  return (await manifests.find(name)) as ManifestEntry
}

test.each<[string, LayerKind, string]>([
  ['parameters', 'params', `{"a":${'['.repeat(1_000)}${']'.repeat(1_000)}}`],
  ['parameters', 'params', '{"a":'],
  ['messages', 'messages', `[{"role":"user","a":${'['.repeat(1_000)}${']'.repeat(1_000)}}]`],
])('invalid or deeply nested %s are read once, and the error is cached', async (what, kind, text) => {
  const entry = await entryOf(kind, text)
  const described = new ManifestReader(blobs)
  const refusal = { code: 'upstream', message: `The ${what} of the model "mine:latest" cannot be used.` }

  await expect(described.readModel(entry)).rejects.toMatchObject(refusal)
  await blobs.remove(entry.manifest.config.digest)

  await expect(described.readModel(entry)).rejects.toMatchObject(refusal)
})

test.each<[LayerKind, string, string]>([
  ['params', '{"stop":"', '"}'],
  ['messages', '[{"role":"user","content":"', '"}]'],
])('%s of more than 256 kB are not read', async (kind, before, after) => {
  const text = (bytes: number) => before + 'x'.repeat(bytes - before.length - after.length) + after
  const read = async (bytes: number) => new ManifestReader(blobs).readModel(await entryOf(kind, text(bytes)))

  await expect(read(maxJsonBytes)).resolves.toMatchObject({ name: 'mine:latest' })
  await expect(read(maxJsonBytes + 1)).rejects.toMatchObject({ code: 'upstream' })
})
