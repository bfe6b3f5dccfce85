/** Reads a `Model` from its manifest and blobs. */
import { z } from 'zod'
import { LlmError } from '../../errors.ts'
import type { Adapter, Model } from '../model.ts'
import { emptyDefaults, placeholderTemplate } from '../modelfile/defaults.ts'
import { isDeeperThan } from '../modelfile/depth.ts'
import { ByteCache } from './byte-cache.ts'
import type { Digest } from './digest.ts'
import { hexOf } from './digest.ts'
import {
  type LayerKind,
  layerKindOf,
  type Manifest,
  type ModelConfig,
  maxJsonBytes,
  maxTextBytes,
} from './manifest.ts'
import { displayName } from './name.ts'
import type { Blobs, ManifestEntry } from './store-contracts.ts'

const Config = z.looseObject({
  model_format: z.string().nullish(),
  model_family: z.string().nullish(),
  model_families: z.array(z.string()).nullish(),
  model_type: z.string().nullish(),
  file_type: z.string().nullish(),
  renderer: z.string().nullish(),
  parser: z.string().nullish(),
  requires: z.string().nullish(),
  remote_host: z.string().nullish(),
  remote_model: z.string().nullish(),
  capabilities: z.array(z.string()).nullish(),
  context_length: z.number().nullish(),
  embedding_length: z.number().nullish(),
  base_name: z.string().nullish(),
})
const Params = z.record(z.string(), z.unknown())
const Messages = z.array(z.object({ role: z.string(), content: z.string().default('') }))

type ManifestDescription = Pick<Model, 'defaults' | 'config'>

export class ManifestReader {
  readonly #blobs: Blobs
  /** Keyed by the digest of the manifest. Manifests with the same digest have the same blobs. */
  readonly #descriptions = new ByteCache<ManifestDescription>(
    (error) => error instanceof DamagedManifestError,
  )

  constructor(blobs: Blobs) {
    this.#blobs = blobs
  }

  /** Throws an `LlmError` `upstream` if a blob is missing or damaged. */
  async readModel(entry: ManifestEntry): Promise<Model> {
    return { ...(await this.#locateFiles(entry)), ...(await this.#describe(entry)) }
  }

  /** Reads a model for a list. Omits defaults and configuration if a blob is missing or damaged. */
  async tryReadModel(entry: ManifestEntry): Promise<Model> {
    return { ...(await this.#locateFiles(entry)), ...(await this.#describe(entry).catch(() => undefined)) }
  }

  async #locateFiles({ name, manifest, digest, modifiedAt }: ManifestEntry): Promise<Model> {
    const layersOf = (kind: LayerKind) =>
      manifest.layers.filter(({ mediaType }) => layerKindOf(mediaType) === kind)
    const pathOf = async (layer: { readonly digest: Digest }) =>
      (await this.#blobs.find(layer.digest))?.path ?? ''
    const weights = layersOf('model').at(-1)
    const adapters = layersOf('adapter').map(
      async (layer): Promise<Adapter> => ({
        path: await pathOf(layer),
        scale: 1,
        sizeBytes: layer.size,
        modifiedAt: new Date(0),
      }),
    )
    const projectors = layersOf('projector').map(pathOf)
    const path = weights ? await pathOf(weights) : ''
    return {
      name: displayName(name),
      path,
      ...(weights && path === '' && { isIncomplete: true }),
      sizeBytes: [manifest.config, ...manifest.layers].reduce((sum, { size }) => sum + size, 0),
      modifiedAt,
      digest: hexOf(digest),
      isBuiltIn: false,
      ...(adapters.length > 0 && { adapters: await Promise.all(adapters) }),
      ...(projectors.length > 0 && { projectors: await Promise.all(projectors) }),
      ...(weights?.from && { parent: weights.from }),
    }
  }

  #describe({ name, manifest, digest }: ManifestEntry): Promise<ManifestDescription> {
    return this.#descriptions.get(digest, () => describeManifest(manifest, displayName(name), this.#blobs))
  }
}

/** Keeps all licenses, but only the last layer of any other kind. */
async function describeManifest(
  manifest: Manifest,
  name: string,
  blobs: Blobs,
): Promise<ManifestDescription> {
  let remainingBytes = maxTextBytes
  const textOf = async (
    { digest }: { readonly digest: Digest },
    maxBytes = remainingBytes,
  ): Promise<string> => {
    const bytes = await blobs.read(digest, Math.min(maxBytes, remainingBytes))
    remainingBytes -= bytes.length
    return bytes.toString()
  }
  const config = parseJson(
    Config,
    await textOf(manifest.config, maxJsonBytes),
    `configuration of the model "${name}"`,
  )
  let defaults = emptyDefaults
  for (const layer of manifest.layers) {
    const kind = layerKindOf(layer.mediaType)
    if (kind === 'template' || kind === 'prompt') {
      const template = await textOf(layer)
      if (template !== placeholderTemplate) defaults = { ...defaults, template }
    }
    if (kind === 'system') defaults = { ...defaults, system: await textOf(layer) }
    if (kind === 'license') defaults = { ...defaults, license: [...defaults.license, await textOf(layer)] }
    if (kind === 'params') {
      const parameters = parseJson(
        Params,
        await textOf(layer, maxJsonBytes),
        `parameters of the model "${name}"`,
      )
      defaults = { ...defaults, parameters }
    }
    if (kind === 'messages') {
      const messages = parseJson(
        Messages,
        await textOf(layer, maxJsonBytes),
        `messages of the model "${name}"`,
      )
      defaults = { ...defaults, messages }
    }
  }
  return { defaults, config: withoutNull(config) as ModelConfig }
}

/** This failure is permanent, since the blobs of a manifest never change. */
class DamagedManifestError extends LlmError {}

/** Go writes `null` for absent values. */
const withoutNull = (object: object): object =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null))

function parseJson<T>(schema: z.ZodType<T>, text: string, label: string): T {
  try {
    const value: unknown = JSON.parse(text)
    if (isDeeperThan(value)) throw new Error('it is nested too deep')
    return schema.parse(value)
  } catch (cause) {
    throw new DamagedManifestError('upstream', `The ${label} cannot be used.`, {}, { cause })
  }
}
