/** Creates model stores that use the registries of a test, and models to publish in these registries. */
import { BlobStore } from '../../packages/core/src/models/ollama-store/blobs.ts'
import { ManifestStore } from '../../packages/core/src/models/ollama-store/manifests.ts'
import type { Progress } from '../../packages/core/src/models/registry/progress.ts'
import type { TransferPolicy } from '../../packages/core/src/models/registry/retry.ts'
import { type RegistryOptions, Transfers } from '../../packages/core/src/models/registry/transfer.ts'
import { emptyFolder } from './empty-folder.ts'
import { blobOf, type MadeBlob, type SmallRegistry } from './registry.ts'

/** Retries without a noticeable pause. */
export const quickPace: TransferPolicy = { stallMs: 10_000, pauseMs: 1, maxFailures: 6 }
/** Has a short time limit for stalls, which still suffices on a busy machine. */
export const impatientPace: TransferPolicy = { stallMs: 700, pauseMs: 1, maxFailures: 3 }

export interface Store {
  readonly root: string
  readonly blobs: BlobStore
  readonly manifests: ManifestStore
  readonly transfers: Transfers
}

export function storeFor(
  hosts: readonly string[],
  {
    root = emptyFolder(),
    policy = quickPace,
    maxBytes = Number.POSITIVE_INFINITY,
    ...registries
  }: Partial<RegistryOptions & { root: string; maxBytes: number }> = {},
): Store {
  const blobs = new BlobStore([root], { maxBytes })
  const manifests = new ManifestStore([root], blobs)
  const all = { hosts: [], privateHosts: hosts, policy, ...registries }
  return {
    root,
    blobs,
    manifests,
    transfers: new Transfers({ blobs, manifests, registries: all, prune: true }),
  }
}

/** Pulls over `http`, because the test registries have no TLS. */
export const pull = (
  { transfers }: Store,
  name: string,
  signal = new AbortController().signal,
): AsyncIterable<Progress> => transfers.pull(name, { signal, insecure: true })

export const push = (
  { transfers }: Store,
  name: string,
  signal = new AbortController().signal,
): AsyncIterable<Progress> => transfers.push(name, { signal, insecure: true })

export async function all<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const list: T[] = []
  for await (const item of items) list.push(item)
  return list
}

export interface MadeModel {
  readonly manifest: Buffer
  readonly layers: readonly MadeBlob[]
  readonly config: MadeBlob
}

export function madeModel(weights: MadeBlob, system = 'You are terse.'): MadeModel {
  const config = blobOf('{"model_format":"gguf","model_family":"llama"}')
  const layers = [weights, blobOf(system)]
  const layer = (kind: string, { digest, sizeBytes }: MadeBlob) => ({
    mediaType: `application/vnd.ollama.image.${kind}`,
    digest,
    size: sizeBytes,
  })
  const manifest = {
    schemaVersion: 2,
    mediaType: 'application/vnd.docker.distribution.manifest.v2+json',
    config: { ...layer('', config), mediaType: 'application/vnd.docker.container.image.v1+json' },
    layers: [layer('model', weights), layer('system', layers[1] as MadeBlob)],
  }
  return { manifest: Buffer.from(JSON.stringify(manifest)), layers, config }
}

/** Uploads a model over the registry protocol, each blob in one request. */
export async function publish(
  url: string,
  repository: string,
  { manifest, layers, config }: MadeModel,
): Promise<void> {
  for (const blob of [...layers, config]) {
    const started = await fetch(`${url}/v2/${repository}/blobs/uploads/`, { method: 'POST' })
    const place = new URL(started.headers.get('location') ?? '', url)
    place.searchParams.set('digest', blob.digest)
    await expectOk(
      await fetch(place, { method: 'PUT', body: Buffer.concat([...blob.bytes(0, blob.sizeBytes)]) }),
    )
  }
  const headers = { 'content-type': 'application/vnd.docker.distribution.manifest.v2+json' }
  await expectOk(
    await fetch(`${url}/v2/${repository}/manifests/latest`, { method: 'PUT', body: manifest, headers }),
  )
}

async function expectOk(response: Response): Promise<void> {
  if (!response.ok) throw new Error(`${response.url}: ${response.status} ${await response.text()}`)
}

/** Adds a model to a `SmallRegistry` directly, without requests. */
export function put(
  registry: SmallRegistry,
  repository: string,
  { manifest, layers, config }: MadeModel,
): void {
  for (const blob of [...layers, config]) registry.addBlob(blob)
  registry.addManifest(`${repository}/latest`, manifest)
}
