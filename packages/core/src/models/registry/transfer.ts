/**
 * Pulls and pushes models. Progress is reported as in "Pull a model" and "Push a model" of the Ollama API
 * reference.
 */
import type { LookupFunction } from 'node:net'
import { LlmError, modelNotFound } from '../../errors.ts'
import { type Digest, hexOf } from '../ollama-store/digest.ts'
import { digestsOf, type Layer, type Manifest, parseManifest } from '../ollama-store/manifest.ts'
import {
  displayName,
  expectName,
  expectStorable,
  type ModelName,
  parseModelName,
} from '../ollama-store/name.ts'
import type { Blobs, Manifests } from '../ollama-store/store-contracts.ts'
import { type CredentialSources, findCredentials } from './credentials.ts'
import { Download } from './download.ts'
import { GuardedFetch } from './guarded-fetch.ts'
import type { RegistryIdentity } from './identity.ts'
import type { Progress, TransferOptions } from './progress.ts'
import { streamProgress } from './progress-stream.ts'
import type { ProxySettings } from './proxy.ts'
import { Registry } from './registry.ts'
import { defaultTransferPolicy, type TransferPolicy } from './retry.ts'
import { SharedWork } from './shared-work.ts'
import { Upload } from './upload.ts'

export interface TransferDependencies {
  readonly blobs: Blobs
  readonly manifests: Manifests
  readonly registries: RegistryOptions
  /** Whether a pull removes blobs that only the replaced model used. */
  readonly prune: boolean
}

export interface RegistryOptions extends RegistryIdentity {
  /** Hosts of allowed registries, such as `registry.ollama.ai`. */
  readonly hosts: readonly string[]
  /**
   * Further allowed registries, as `host` or `host:port`. They may have private addresses, and may use `http`
   * if a request sets `insecure`.
   */
  readonly privateHosts: readonly string[]
  /** @default none */
  readonly credentials?: CredentialSources
  /** DNS lookup. @default the system's resolver */
  readonly lookup?: LookupFunction
  /** Proxies of the environment. @default none */
  readonly proxy?: ProxySettings
  /** Limits and pauses of transfers. @default `defaultTransferPolicy` */
  readonly policy?: TransferPolicy
}

export class Transfers {
  readonly #blobs: Blobs
  readonly #manifests: Manifests
  readonly #prune: boolean
  readonly #registries: RegistryOptions
  readonly #guard: GuardedFetch
  readonly #policy: TransferPolicy
  /** Running downloads. Pulls of the same blob share a download if their manifests agree on its size. */
  readonly #downloads = new Map<Digest, SharedWork<Download>>()

  constructor({ blobs, manifests, registries, prune }: TransferDependencies) {
    this.#blobs = blobs
    this.#manifests = manifests
    this.#prune = prune
    this.#registries = registries
    this.#guard = new GuardedFetch(registries)
    this.#policy = registries.policy ?? defaultTransferPolicy
  }

  /**
   * Before the first `Progress`, throws `invalid_request` for an invalid name and `permission` for a registry
   * that is not allowed. Later, throws `not_found`, `upstream` or `too_large`. An interrupted pull keeps the
   * downloaded bytes, and the next pull resumes.
   */
  async *pull(name: string, { signal, insecure = false }: TransferOptions): AsyncGenerator<Progress> {
    const model = expectName(parseModelName(name))
    expectStorable(model)
    const registry = this.#createRegistry(model, insecure)
    yield* endOnAbort(signal, this.#pull(model, registry, signal))
  }

  /** Throws like `pull`. */
  async *push(name: string, { signal, insecure = false }: TransferOptions): AsyncGenerator<Progress> {
    const model = expectName(parseModelName(name))
    const registry = this.#createRegistry(model, insecure)
    yield* endOnAbort(signal, this.#push(model, registry, signal))
  }

  async *#pull(model: ModelName, registry: Registry, signal: AbortSignal): AsyncGenerator<Progress> {
    yield { status: 'pulling manifest' }
    const bytes = await registry.fetchManifest(signal).catch((error) => {
      throw prefixError('pull model manifest', error)
    })
    const manifest = parseManifest(bytes)
    if (!manifest) throw new LlmError('upstream', 'pull model manifest: the registry sent no manifest')
    if (manifest.layers.some(({ mediaType }) => mediaType.endsWith('.tensor')))
      throw new LlmError('upstream', 'this model requires MLX support, but the MLX runtime is not available')
    const layers = blobsOf(manifest)
    for (const [index, layer] of layers.entries()) {
      yield* this.#pullBlob(layer, registry, signal)
      // No manifest references the earlier blobs yet: renewing their dates protects them from pruning.
      for (const { digest } of layers.slice(0, index)) await this.#blobs.touch(digest)
    }
    // Nothing is left to verify: each downloaded blob was verified before it was published.
    yield { status: 'verifying sha256 digest' }
    yield { status: 'writing manifest' }
    const replaced = await this.#manifests.write(model, bytes)
    yield* this.#removeUnused(replaced, manifest)
    yield { status: 'success' }
  }

  async *#pullBlob(
    { digest, size }: Layer,
    registry: Registry,
    signal: AbortSignal,
  ): AsyncGenerator<Progress> {
    const event = { status: `pulling ${hexOf(digest).slice(0, 12)}`, digest, totalBytes: size }
    if (await this.#hasBlob(digest, size)) {
      yield { ...event, completedBytes: size }
      return
    }
    const shared = this.#startDownload(digest, size, registry)
    yield* streamProgress(event, shared.work, (combinedSignal) => shared.join(combinedSignal), signal)
  }

  /** Returns `false` for a blob of another size, which is damaged and must be downloaded again. */
  async #hasBlob(digest: Digest, sizeBytes: number): Promise<boolean> {
    return (await this.#blobs.touch(digest))?.sizeBytes === sizeBytes
  }

  #startDownload(digest: Digest, sizeBytes: number, registry: Registry): SharedWork<Download> {
    const running = this.#downloads.get(digest)
    if (running?.isJoinable && running.work.sizeBytes === sizeBytes) return running
    const source = {
      digest,
      sizeBytes,
      fetch: registry.fetchBlob.bind(registry, digest),
    }
    const download = new Download(source, this.#blobs, this.#policy)
    const shared = new SharedWork(download, (signal) =>
      this.#blobs.withDownloadLock(digest, signal, async (lost) => {
        // Another process may have downloaded the blob while this process waited for the lock.
        if (!(await this.#hasBlob(digest, sizeBytes))) await download.run(AbortSignal.any([signal, lost]))
      }),
    )
    this.#downloads.set(digest, shared)
    const forget = (): void => {
      if (this.#downloads.get(digest) === shared) this.#downloads.delete(digest)
    }
    shared.ended.then(forget, forget)
    return shared
  }

  async *#removeUnused(replaced: Manifest | undefined, manifest: Manifest): AsyncGenerator<Progress> {
    const used = new Set(digestsOf(manifest))
    const unused = (replaced ? digestsOf(replaced) : []).filter((one) => !used.has(one))
    if (!this.#prune || unused.length === 0) return
    yield { status: 'removing unused layers' }
    try {
      await this.#manifests.prune(unused)
    } catch (error) {
      yield { status: `couldn't remove unused layers: ${LlmError.from(error).message}` }
    }
  }

  async *#push(model: ModelName, registry: Registry, signal: AbortSignal): AsyncGenerator<Progress> {
    yield { status: 'retrieving manifest' }
    const entry = await this.#manifests.find(model)
    if (!entry) {
      yield { status: "couldn't retrieve manifest" }
      throw modelNotFound(displayName(model))
    }
    for (const layer of blobsOf(entry.manifest)) yield* this.#pushBlob(layer, model, registry, signal)
    yield { status: 'pushing manifest' }
    await registry.putManifest(entry.bytes, signal)
    yield { status: 'success' }
  }

  async *#pushBlob(
    layer: Layer,
    model: ModelName,
    registry: Registry,
    signal: AbortSignal,
  ): AsyncGenerator<Progress> {
    const { digest, size } = layer
    const event = { status: `pushing ${hexOf(digest).slice(0, 12)}`, digest, totalBytes: size }
    if (await registry.hasBlob(digest, signal)) {
      yield { ...event, completedBytes: size }
      return
    }
    const blob = await this.#blobs.find(digest)
    if (!blob) throw new LlmError('upstream', `the blob ${digest} of ${displayName(model)} is missing`)
    const upload = new Upload(
      { digest, ...blob, from: repositoryOf(layer.from, model) },
      registry,
      this.#policy,
    )
    yield* streamProgress(event, upload, (combinedSignal) => upload.run(combinedSignal), signal)
  }

  #createRegistry(model: ModelName, insecure: boolean): Registry {
    const host = model.host.toLowerCase()
    const isPrivate = this.#guard.isPrivateHost(host)
    if (!isPrivate && !this.#registries.hosts.includes(host))
      throw new LlmError('permission', `registry "${model.host}" is not allowed on this server`, {
        param: 'model',
      })
    if (insecure && !isPrivate)
      throw new LlmError(
        'permission',
        `insecure protocol http: registry "${model.host}" is contacted only over https`,
        {
          param: 'insecure',
        },
      )
    const { credentials } = this.#registries
    return new Registry(this.#guard, model, {
      identity: this.#registries,
      findCredentials: async (origin) => credentials && findCredentials(credentials, origin),
      insecure,
      requestTimeoutMs: this.#policy.stallMs,
    })
  }
}

/** Returns each blob once, in the order of the transfer. */
function blobsOf({ layers, config }: Manifest): readonly Layer[] {
  return [...new Map([...layers, config].map((layer) => [layer.digest, layer])).values()]
}

/** Returns the repository of the model `from`, such as `library/tiny`, if it is in the same registry. */
function repositoryOf(from: string | undefined, { host }: ModelName): string | undefined {
  const name = from === undefined ? undefined : parseModelName(from)
  return name?.host.toLowerCase() === host.toLowerCase() ? `${name.namespace}/${name.model}` : undefined
}

/** Ends without an error after an abort. */
async function* endOnAbort(signal: AbortSignal, events: AsyncIterable<Progress>): AsyncGenerator<Progress> {
  try {
    yield* events
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

function prefixError(what: string, error: unknown): unknown {
  if (!(error instanceof LlmError)) return error
  return new LlmError(error.code, `${what}: ${error.message}`, error.details, { cause: error })
}
