/** Loads the weights of a new model from a base model or from uploaded files. */
import { LlmError, modelNotFound } from '../../errors.ts'
import { checkModel } from '../gguf/check.ts'
import { readDetails } from '../gguf/details.ts'
import { describeFile, readGguf, unusableFile } from '../gguf/gguf.ts'
import type { ModelDetails } from '../gguf/model-details.ts'
import {
  blameRequest,
  checkAdapters,
  expectGgufFile,
  expectUnsplitFile,
  parseAdapters,
  parseUploads,
  uploadKinds,
} from '../gguf/uploaded-files.ts'
import type { CreateDependencies, CreateModelRequest } from '../modelfile/create-request.ts'
import { withoutDigest } from '../pinned-name.ts'
import type { Progress, TransferOptions } from '../registry/progress.ts'
import type { Digest } from './digest.ts'
import {
  type Layer,
  type LayerKind,
  layerKindOf,
  type ModelConfig,
  maxTextBytes,
  mediaTypeOf,
} from './manifest.ts'
import { displayName, type ModelName } from './name.ts'
import type { Blobs } from './store-contracts.ts'

export interface Weights {
  readonly layers: readonly Layer[]
  /** Details of the models and projectors among the layers. */
  readonly models: readonly Pick<ModelDetails, 'architecture' | 'parameterSize' | 'quantization'>[]
  /** Configuration of the base model. */
  readonly config: ModelConfig
  readonly parameters: Readonly<Record<string, unknown>>
}

type WeightsSteps = AsyncGenerator<Progress, Weights>

/** Throws `invalid_request` at the first unusable file. */
export async function* loadWeightsFromFiles(
  { files = {}, adapters }: CreateModelRequest,
  { blobs }: CreateDependencies,
): WeightsSteps {
  for (const [name, digest] of Object.entries(files)) await expectGgufFile(name, digest, blobs)
  const uploads = [...(yield* parseUploads(files, blobs)), ...(yield* parseAdapters(adapters, blobs))]
  const parts = uploadKinds.flatMap((kind) => uploads.filter((upload) => upload.kind === kind))
  const models = parts.filter(({ kind }) => kind !== 'adapter')
  for (const { kind, name, path } of models) {
    yield { status: 'verifying conversion' }
    if (kind === 'model') await blameRequest(checkModel({ name, path }))
  }
  const [main] = models.filter(({ kind }) => kind === 'model')
  if (main) await checkAdapters(main, parts)
  return {
    layers: parts.map(({ layer }) => layer),
    models: models.map(({ details }) => details),
    config: {},
    parameters: {},
  }
}

/**
 * Pulls the base model if it is missing. Throws the errors of `pull`, and `invalid_request` for a LoRA
 * adapter that does not fit.
 */
export async function* loadWeightsFromModel(
  name: ModelName,
  { adapters, from: requestedName = displayName(name) }: CreateModelRequest,
  dependencies: CreateDependencies,
  options: TransferOptions,
): WeightsSteps {
  const { blobs } = dependencies
  const { layers, from, config, parameters } = yield* resolveBase(name, requestedName, dependencies, options)
  const uploads = yield* parseAdapters(adapters, blobs)
  const models: { name: string; path: string; kind: LayerKind | undefined; details: ModelDetails }[] = []
  for (const { mediaType, digest } of layers) {
    const { path } = await findBlob(blobs, digest, from)
    const kind = layerKindOf(mediaType)
    if (kind === 'model' || kind === 'projector')
      models.push({ name: from, path, kind, details: await readDetails({ name: from, path }) })
  }
  const main = models.find(({ kind }) => kind === 'model')
  if (main) await checkAdapters(main, uploads)
  // A model has at most one LoRA adapter, so a new adapter replaces the adapter of the base model.
  const inherited = layers.filter(
    ({ mediaType }) => uploads.length === 0 || layerKindOf(mediaType) !== 'adapter',
  )
  return {
    layers: [...inherited.map((layer) => ({ ...layer, from })), ...uploads.map(({ layer }) => layer)],
    models: models.map(({ details }) => details),
    config,
    parameters,
  }
}

interface BaseModel extends Pick<Weights, 'layers' | 'config' | 'parameters'> {
  readonly from: string
}

async function* resolveBase(
  name: ModelName,
  requestedName: string,
  dependencies: CreateDependencies,
  options: TransferOptions,
): AsyncGenerator<Progress, BaseModel> {
  const { blobs } = dependencies
  const from = displayName(name)
  let found = await dependencies.find(requestedName)
  if (!found) {
    // A registry may have another version by now.
    if (withoutDigest(requestedName) !== requestedName) throw modelNotFound(requestedName)
    yield* dependencies.pull(from, options)
    found = await dependencies.find(from)
    if (!found) throw modelNotFound(from)
  }
  if ('path' in found) {
    const { path } = found
    expectUnsplitFile(from, (await readGguf(path, { label: describeFile(from) })).metadata)
    yield { status: 'copying file' }
    const { digest, sizeBytes: size } = await blobs.copy(path, options.signal)
    const layers = [{ mediaType: mediaTypeOf('model'), digest, size }]
    return { layers, from, config: {}, parameters: {} }
  }
  const { entry } = found
  const { config, layers } = entry.manifest
  const params = layers.find(({ mediaType }) => layerKindOf(mediaType) === 'params')
  return {
    layers,
    from: displayName(entry.name),
    config: await readObject(blobs, config.digest),
    parameters: params ? await readObject(blobs, params.digest) : {},
  }
}

async function findBlob(blobs: Blobs, digest: Digest, model: string): Promise<{ path: string }> {
  const found = await blobs.find(digest)
  if (found) return found
  throw unusableFile(describeFile(model), `its blob ${digest} is not there`)
}

async function readObject(blobs: Blobs, digest: Digest): Promise<Readonly<Record<string, unknown>>> {
  const text = String(await blobs.read(digest, maxTextBytes))
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  } catch {}
  throw new LlmError('upstream', `The blob ${digest} is damaged.`)
}
