/** What a model that is made begins with: the layers of another one, or uploaded files. */
import { LlmError, modelNotFound } from '../../errors.ts'
import { checkModel } from '../gguf/check.ts'
import { type ModelDetails, readDetails } from '../gguf/details.ts'
import { fileOf, readGguf, unusable } from '../gguf/gguf.ts'
import {
  adaptersOf,
  asInput,
  checkAdapters,
  expectKnownType,
  expectOneFile,
  uploadKinds,
  uploadsOf,
} from '../gguf/uploaded-files.ts'
import type { CreateModel, CreateParts } from '../modelfile/create.ts'
import type { Progress, TransferOptions } from '../registry/progress.ts'
import { maxTextBytes } from './describe-manifest.ts'
import type { Digest } from './digest.ts'
import { type Layer, type LayerKind, layerKind, layerType, type ModelConfig } from './manifest.ts'
import { displayName, type ModelName } from './name.ts'
import type { Blobs } from './store-contracts.ts'

export interface Weights {
  readonly layers: readonly Layer[]
  /** The models and projectors among the layers. */
  readonly models: readonly Pick<ModelDetails, 'architecture' | 'parameterSize' | 'quantization'>[]
  /** Of the model that it is made from. */
  readonly config: ModelConfig
  readonly parameters: Readonly<Record<string, unknown>>
}

type Steps = AsyncGenerator<Progress, Weights>

/** Throws `invalid_request`, from the first file on that is none. */
export async function* weightsOfFiles({ files = {}, adapters }: CreateModel, { blobs }: CreateParts): Steps {
  for (const [name, digest] of Object.entries(files)) await expectKnownType(name, digest, blobs)
  const uploads = [...(yield* uploadsOf(files, blobs)), ...(yield* adaptersOf(adapters, blobs))]
  const parts = uploadKinds.flatMap((kind) => uploads.filter((upload) => upload.kind === kind))
  const models = parts.filter(({ kind }) => kind !== 'adapter')
  for (const { kind, name, path } of models) {
    yield { status: 'verifying conversion' }
    if (kind === 'model') await asInput(checkModel({ name, path }))
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

/** Throws what `pull` throws where the model is not there, and `invalid_request` for an adapter that does not fit. */
export async function* weightsOfModel(
  name: ModelName,
  { adapters, from: asked = displayName(name) }: CreateModel,
  parts: CreateParts,
  options: TransferOptions,
): Steps {
  const { blobs } = parts
  const { layers, from, config, parameters } = yield* baseOf(name, asked, parts, options)
  const uploads = yield* adaptersOf(adapters, blobs)
  const models: { name: string; path: string; kind: LayerKind | undefined; details: ModelDetails }[] = []
  for (const { mediaType, digest } of layers) {
    const { path } = await findBlob(blobs, digest, from)
    const kind = layerKind(mediaType)
    if (kind === 'model' || kind === 'projector')
      models.push({ name: from, path, kind, details: await readDetails({ name: from, path }) })
  }
  const main = models.find(({ kind }) => kind === 'model')
  if (main) await checkAdapters(main, uploads)
  // One can be used: a new one takes the place of the one before.
  const kept = layers.filter(({ mediaType }) => uploads.length === 0 || layerKind(mediaType) !== 'adapter')
  return {
    layers: [...kept.map((layer) => ({ ...layer, from })), ...uploads.map(({ layer }) => layer)],
    models: models.map(({ details }) => details),
    config,
    parameters,
  }
}

interface Base extends Pick<Weights, 'layers' | 'config' | 'parameters'> {
  readonly from: string
}

async function* baseOf(
  name: ModelName,
  asked: string,
  parts: CreateParts,
  options: TransferOptions,
): AsyncGenerator<Progress, Base> {
  const { blobs } = parts
  const from = displayName(name)
  let found = await parts.find(asked)
  if (!found) {
    yield* parts.pull(from, options)
    found = await parts.find(from)
    if (!found) throw modelNotFound(from)
  }
  if ('path' in found) {
    const { path } = found
    expectOneFile(from, (await readGguf(path, { what: fileOf(from) })).metadata)
    yield { status: 'copying file' }
    const { digest, sizeBytes: size } = await blobs.copy(path, options.signal)
    const layers = [{ mediaType: layerType('model'), digest, size }]
    return { layers, from, config: {}, parameters: {} }
  }
  const { entry } = found
  const { config, layers } = entry.manifest
  const params = layers.find(({ mediaType }) => layerKind(mediaType) === 'params')
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
  throw unusable(fileOf(model), `its blob ${digest} is not there`)
}

async function readObject(blobs: Blobs, digest: Digest): Promise<Readonly<Record<string, unknown>>> {
  const text = String(await blobs.read(digest, maxTextBytes))
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  } catch {}
  throw new LlmError('upstream', `The blob ${digest} is damaged.`)
}
