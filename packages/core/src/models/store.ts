/** The models on disk: Ollama manifests, standalone GGUF files and the built-in model. */
import { invalidRequest, LlmError, modelNotFound } from '../errors.ts'
import { checkModel } from './gguf/check.ts'
import { readDetails } from './gguf/details.ts'
import type { GgufOptions } from './gguf/gguf.ts'
import type { ModelDetails } from './gguf/model-details.ts'
import type { Model } from './model.ts'
import { createModel } from './modelfile/create.ts'
import type { CreateDependencies, CreateModelRequest } from './modelfile/create-request.ts'
import { type BlobOptions, BlobStore } from './ollama-store/blobs.ts'
import { hexOf } from './ollama-store/digest.ts'
import { FileCache } from './ollama-store/file-cache.ts'
import { digestsOf } from './ollama-store/manifest.ts'
import { ManifestReader } from './ollama-store/manifest-reader.ts'
import { ManifestStore } from './ollama-store/manifests.ts'
import { candidateNames, displayName, parseExactName, parseNameKey } from './ollama-store/name.ts'
import {
  isModelFolder,
  listModelFiles,
  type ModelFile,
  type ModelSource,
  toModel,
  withTag,
} from './ollama-store/standalone-files.ts'
import type { Blobs, ManifestEntry } from './ollama-store/store-contracts.ts'
import { type PinnedName, parsePinnedName } from './pinned-name.ts'
import type { Progress, TransferOptions } from './registry/progress.ts'
import { type RegistryOptions, Transfers } from './registry/transfer.ts'
import { snapshotOf, toReplacedEntry, versionKeyOf } from './snapshots/replaced-models.ts'
import type { SnapshotRecord } from './snapshots/snapshot-file.ts'
import { type SeenVersion, Snapshots } from './snapshots/snapshots.ts'

export interface ModelStoreOptions extends BlobOptions {
  /** Registries that `pull` and `push` may contact. @default none */
  readonly registries?: RegistryOptions
  /** Whether replacing a model removes the blobs that no manifest references afterwards. @default true */
  readonly prune?: boolean
  /** Folders for the file of snapshots. The first that can be written gets it. @default the first folder of models */
  readonly snapshotFolders?: readonly string[]
}

/** A manifest, or a standalone GGUF file. */
type FoundModel = { readonly entry: ManifestEntry } | { readonly file: ModelFile }

export class ModelStore {
  readonly blobs: Blobs
  readonly #sources: readonly ModelSource[]
  readonly #manifests: ManifestStore
  readonly #manifestReader: ManifestReader
  readonly #transfers: Transfers
  readonly #prune: boolean
  readonly #snapshots: Snapshots
  readonly #details = new FileCache((model) => readDetails(model))
  readonly #checks = new FileCache(checkModel)

  /**
   * @param sources folders and files, searched in this order. New models are written to the first folder
   */
  constructor(
    sources: readonly ModelSource[],
    {
      registries = { hosts: [], privateHosts: [] },
      prune = true,
      snapshotFolders,
      ...limits
    }: ModelStoreOptions = {},
  ) {
    const folders = sources.filter(isModelFolder).map(({ path }) => path)
    const blobs = new BlobStore(folders, limits)
    const manifests = new ManifestStore(folders, blobs)
    this.blobs = blobs
    this.#sources = sources
    this.#manifests = manifests
    this.#manifestReader = new ManifestReader(blobs)
    this.#transfers = new Transfers({ blobs, manifests, registries, prune })
    this.#prune = prune
    this.#snapshots = new Snapshots(snapshotFolders ?? folders.slice(0, 1))
  }

  /** Lists all models by name. Reads the folders on every call, since files can change at any time. */
  async list(): Promise<readonly Model[]> {
    const entries = await this.#manifests.list()
    const inFolders = this.#sources.map(async (source) => [
      ...entries
        .filter(({ root }) => root === source.path)
        .map((entry) => this.#manifestReader.tryReadModel(entry)),
      ...(await listModelFiles(source)).map(toModel),
    ])
    const all = await Promise.all((await Promise.all(inFolders)).flat())
    const models = new Map<string, Model>()
    for (const model of all) if (model && !models.has(model.name)) models.set(model.name, model)
    return [...models.values()].sort(compareByName)
  }

  /**
   * Lists the versions of models that have a dated id, each with its `snapshot`. Replaced versions are among them
   * while their blobs exist. A standalone file is missing until it is hashed in the background.
   */
  async snapshots(): Promise<readonly Model[]> {
    const models = await this.list()
    const manifests = new Map(
      (await this.#manifests.list()).map((entry) => [versionKeyOf(entry), entry.bytes]),
    )
    const versions = await Promise.all(
      models.map(async (model): Promise<readonly (SeenVersion & { readonly model: Model })[]> => {
        if (model.path === '') return []
        const manifest = manifests.get(`${model.name} ${model.digest}`)
        const digest = manifest ? model.digest : await this.#snapshots.digestOf(model)
        if (digest === undefined) return []
        const { name, modifiedAt } = model
        return [{ name, modifiedAt, digest, model, ...(manifest && { manifest }) }]
      }),
    )
    const seen = versions.flat()
    const names = new Set(models.map(({ name }) => name))
    const toSnapshot = async (record: SnapshotRecord): Promise<readonly Model[]> => {
      if (names.has(withTag(record.id))) return []
      const current = seen.find(({ name, digest }) => name === record.name && digest === record.digest)
      const model = current?.model ?? (names.has(record.name) ? await this.#readReplaced(record) : undefined)
      return model ? [{ ...model, snapshot: snapshotOf(record) }] : []
    }
    return (await Promise.all((await this.#snapshots.see(seen)).map(toSnapshot))).flat()
  }

  /**
   * Finds a model by its name, which can omit the tag. `Tiny` and `registry.ollama.ai/library/tiny` also find
   * `tiny:latest`, unless another model matches the name exactly. `tiny@sha256:…` finds one version, and so does the
   * dated id of a snapshot, such as `tiny-20261122`. Throws an `LlmError`: `not_found`, or `upstream` if the model's
   * configuration or defaults are missing or damaged.
   */
  async get(name: string): Promise<Model> {
    const found = await this.#find(name)
    const model = found && (await this.#read(found))
    if (model) return model
    const record = await this.#snapshots.find(name)
    const pinned = record && (await this.#findVersion(record))
    const snapshot = pinned && (await this.#read(pinned))
    if (snapshot) return { ...snapshot, snapshot: snapshotOf(record) }
    throw modelNotFound(name)
  }

  /**
   * Reads details and capabilities of a model. Throws `not_found` for a missing model or missing weights,
   * `invalid_request` for a model without weights, and `upstream` for an unusable file.
   */
  async details(
    nameOrModel: string | Model,
    { arrays = false }: Pick<GgufOptions, 'arrays'> = {},
  ): Promise<ModelDetails> {
    const model = typeof nameOrModel === 'string' ? await this.get(nameOrModel) : nameOrModel
    if (model.details) return model.details
    expectWeights(model)
    // Arrays are not cached: a vocabulary takes megabytes, and few requests need it.
    return arrays ? readDetails(model, { arrays }) : this.#details.get(model)
  }

  /**
   * Throws an `LlmError` `upstream` if a file of the model is damaged or would crash the engine. Throws like
   * `details` if the weights are missing.
   */
  async check(model: Model): Promise<void> {
    expectWeights(model)
    return this.#checks.get(model)
  }

  /**
   * Creates a model from a base model or from uploaded blobs. Yields several `Progress` objects. The last has
   * status `success`. Throws `invalid_request`, and the errors of `pull` if the base model must be pulled.
   */
  create(spec: CreateModelRequest, options: Partial<TransferOptions> = {}): AsyncIterable<Progress> {
    const dependencies = {
      blobs: this.blobs,
      manifests: this.#manifests,
      prune: this.#prune,
      pull: (name: string, transfer: TransferOptions) => this.#transfers.pull(name, transfer),
      find: (name: string) => this.#findBase(name),
    }
    return createModel(spec, dependencies, { signal: neverAborted(), ...options })
  }

  /**
   * Pulls a model from its registry, and resumes an interrupted download. Yields a `Progress` about every 60
   * ms. The last `Progress` has status `success`. Throws `permission` for a registry that is not allowed. It
   * can also throw `invalid_request`, `not_found`, `upstream` and `too_large`.
   */
  pull(name: string, options: Partial<TransferOptions> = {}): AsyncIterable<Progress> {
    return this.#transfers.pull(name, { signal: neverAborted(), ...options })
  }

  /**
   * Pushes a model to the registry whose host is part of the model's name. Yields and throws like `pull`.
   * Also throws `permission` for a standalone file.
   */
  async *push(name: string, options: Partial<TransferOptions> = {}): AsyncGenerator<Progress> {
    const pin = parsePinnedName(name)
    const found = pin ? await this.#findCurrent(pin) : await this.#findByName(name)
    if (pin && !found) throw modelNotFound(name)
    if (found && 'file' in found)
      throw standaloneFileError(found.file, 'pushed: copy it to another name first')
    yield* this.#transfers.push(pin?.name ?? name, { signal: neverAborted(), ...options })
  }

  /**
   * Copies a model to another name. Throws `not_found`, `invalid_request` for an invalid name, and
   * `permission`. Rejects with the signal's reason if the signal aborts while a file is copied.
   */
  async copy(
    from: string,
    to: string,
    { signal = neverAborted() }: Partial<TransferOptions> = {},
  ): Promise<void> {
    const name = parseExactName(to)
    if (!name) throw invalidRequest(`destination "${to}" is invalid`, { param: 'destination' })
    const found = await this.#find(from)
    if (!found) throw modelNotFound(from)
    if ('entry' in found) {
      const before = await this.#manifests.write(name, found.entry.bytes)
      if (before && this.#prune) await this.#manifests.prune(digestsOf(before))
      return
    }
    for await (const _step of this.create({ name: to, from }, { signal }));
    signal.throwIfAborted()
  }

  /**
   * Removes the manifest, and every blob that no other model needs. If the manifest is damaged, all blobs are
   * kept. A loaded model keeps running. Throws `not_found`, and `permission` for a built-in, standalone or
   * read-only model.
   */
  async delete(name: string): Promise<void> {
    const pin = parsePinnedName(name)
    const found = pin ? await this.#findCurrent(pin) : await this.#findByName(name)
    if (found && 'entry' in found && !found.entry.isReadOnly) {
      await this.#manifests.remove(found.entry.name)
      return void (await this.#manifests.prune(digestsOf(found.entry.manifest)))
    }
    // A damaged manifest is not listed, but occupies its name. While it exists, nothing is pruned.
    for (const one of candidateNames(name)) if (await this.#manifests.removeDamaged(one)) return
    if (!found) throw modelNotFound(name)
    throw 'entry' in found
      ? permissionError(`The model "${displayName(found.entry.name)}" is in a read-only folder.`)
      : standaloneFileError(found.file, 'deleted')
  }

  /**
   * Removes blobs and partial downloads that are older than an hour, unless a model references them. The
   * store never calls this method automatically.
   */
  prune(): Promise<void> {
    return this.#manifests.sweep()
  }

  /** Ends work in the background. */
  async close(): Promise<void> {
    await this.#snapshots.close()
  }

  async #read(found: FoundModel): Promise<Model | undefined> {
    return 'entry' in found ? this.#manifestReader.readModel(found.entry) : toModel(found.file)
  }

  /** Throws `permission` for a standalone file with LoRA adapters, since the new model would lose them. */
  async #findBase(name: string): ReturnType<CreateDependencies['find']> {
    const found = await this.#find(name)
    if (!found || 'entry' in found) return found
    if (found.file.adapters)
      throw permissionError(
        `The model "${found.file.name}" has adapters set in the app's options: create the model from its file instead.`,
      )
    return { path: found.file.path }
  }

  async #findEntry(name: string): Promise<ManifestEntry | undefined> {
    for (const one of candidateNames(name)) {
      const entry = await this.#manifests.find(one)
      if (entry) return entry
    }
    return undefined
  }

  async #find(name: string): Promise<FoundModel | undefined> {
    const pin = parsePinnedName(name)
    return pin ? this.#findVersion(pin) : this.#findByName(name)
  }

  /** Finds one version of a model, even of a model that has been replaced. */
  async #findVersion(pin: PinnedName): Promise<FoundModel | undefined> {
    const current = await this.#findCurrent(pin)
    // The versions of a deleted model are deleted, too.
    if (current || !(await this.#findByName(pin.name))) return current
    const record = await this.#snapshots.findVersion(pin.name, pin.digest)
    const entry = record && toReplacedEntry(record)
    return entry && (await this.#hasBlobs(entry)) ? { entry } : undefined
  }

  /** Finds a model if it has this digest. */
  async #findCurrent({ name, digest }: PinnedName): Promise<FoundModel | undefined> {
    const found = await this.#findByName(name)
    if (!found) return undefined
    if ('entry' in found) return hexOf(found.entry.digest) === digest ? found : undefined
    const model = await toModel(found.file)
    if (!model) return undefined
    return model.digest === digest || (await this.#snapshots.waitForDigest(model)) === digest
      ? found
      : undefined
  }

  async #readReplaced(record: SnapshotRecord): Promise<Model | undefined> {
    const entry = toReplacedEntry(record)
    return entry && (await this.#hasBlobs(entry)) ? this.#manifestReader.tryReadModel(entry) : undefined
  }

  async #hasBlobs({ manifest }: ManifestEntry): Promise<boolean> {
    for (const digest of digestsOf(manifest)) if (!(await this.blobs.find(digest))) return false
    return true
  }

  /** Prefers a model with exactly this name to a model whose name differs in case. */
  async #findByName(name: string): Promise<FoundModel | undefined> {
    const entry = await this.#findEntry(name)
    const listed = withTag(name)
    const isExact = entry && candidateNames(name).some((one) => displayName(one) === displayName(entry.name))
    // If a file name is not a valid model name, only the exact name finds the file.
    const key = parseNameKey(name)
    for (const source of this.#sources) {
      if (isExact && entry.root === source.path) return { entry }
      const file = await findFirstPresent((await listModelFiles(source)).filter((one) => one.name === listed))
      if (file) return { file }
    }
    if (entry) return { entry }
    if (!key) return undefined
    const files = (await Promise.all(this.#sources.map(listModelFiles))).flat()
    const file = await findFirstPresent(
      files.filter((one) => parseNameKey(one.name) === key).sort(compareByName),
    )
    return file && { file }
  }
}

async function findFirstPresent(files: readonly ModelFile[]): Promise<ModelFile | undefined> {
  for (const file of files) if (await toModel(file)) return file
  return undefined
}

const compareByName = (a: { readonly name: string }, b: { readonly name: string }): number =>
  a.name < b.name ? -1 : a.name > b.name ? 1 : 0

function expectWeights({ name, path, isIncomplete }: Model): void {
  if (path !== '') return
  throw isIncomplete
    ? new LlmError('not_found', `the weights of the model "${name}" are not found, try pulling it again`, {
        param: 'model',
      })
    : invalidRequest(`"${name}" has no weights`, { param: 'model' })
}

const permissionError = (message: string): LlmError => new LlmError('permission', message, { param: 'model' })

/** @param action what the client cannot do with the file, such as `deleted`. May add advice after a colon */
const standaloneFileError = ({ name, isBuiltIn }: ModelFile, action: string): LlmError =>
  permissionError(
    `The model "${name}" ${isBuiltIn ? 'is built in' : 'is a standalone file'} and cannot be ${action}.`,
  )

const neverAborted = (): AbortSignal => new AbortController().signal
