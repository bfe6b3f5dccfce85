/** What a manifest says of a model, read from its blobs. */
import { z } from 'zod'
import { LlmError } from '../../errors.ts'
import type { Adapter } from '../gguf/adapter-check.ts'
import { noRecipe } from '../modelfile/defaults.ts'
import { isDeeper } from '../modelfile/depth.ts'
import { noTemplate } from '../modelfile/show.ts'
import type { Model } from '../store.ts'
import { ByteCache } from './byte-cache.ts'
import type { Digest } from './digest.ts'
import { hexOf } from './digest.ts'
import { type LayerKind, layerKind, type Manifest, type ModelConfig } from './manifest.ts'
import { displayName } from './name.ts'
import type { Blobs, Entry } from './store-contracts.ts'

/** Of all texts of one model together: the longest licences are a hundredth of it. */
export const maxTextBytes = 8 * 1024 * 1024
/** Of its configuration, its parameters and its messages, each. */
export const maxJsonBytes = 256 * 1024

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

type Said = Pick<Model, 'recipe' | 'config'>

export class DescribedModels {
  readonly #blobs: Blobs
  /** By the manifest's digest: what it names never changes. */
  readonly #said = new ByteCache<Said>((error) => error instanceof Damaged)

  constructor(blobs: Blobs) {
    this.#blobs = blobs
  }

  /** Throws `upstream` where something that it is made of is missing or damaged. */
  async read(entry: Entry): Promise<Model> {
    return { ...(await this.#model(entry)), ...(await this.#saidBy(entry)) }
  }

  /** For lists: without what cannot be read. */
  async glance(entry: Entry): Promise<Model> {
    return { ...(await this.#model(entry)), ...(await this.#saidBy(entry).catch(() => undefined)) }
  }

  async #model({ name, manifest, digest, modifiedAt }: Entry): Promise<Model> {
    const layersOf = (kind: LayerKind) =>
      manifest.layers.filter(({ mediaType }) => layerKind(mediaType) === kind)
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
      builtIn: false,
      ...(adapters.length > 0 && { adapters: await Promise.all(adapters) }),
      ...(projectors.length > 0 && { projectors: await Promise.all(projectors) }),
      ...(weights?.from && { parent: weights.from }),
    }
  }

  #saidBy({ name, manifest, digest }: Entry): Promise<Said> {
    return this.#said.get(digest, () => read(manifest, displayName(name), this.#blobs))
  }
}

/** Of what may be there once only, the last counts. */
async function read(manifest: Manifest, name: string, blobs: Blobs): Promise<Said> {
  let left = maxTextBytes
  const textOf = async ({ digest }: { readonly digest: Digest }, maxBytes = left): Promise<string> => {
    const bytes = await blobs.read(digest, Math.min(maxBytes, left))
    left -= bytes.length
    return bytes.toString()
  }
  const config = parsed(
    Config,
    await textOf(manifest.config, maxJsonBytes),
    `configuration of the model "${name}"`,
  )
  let recipe = noRecipe
  for (const layer of manifest.layers) {
    const kind = layerKind(layer.mediaType)
    if (kind === 'template' || kind === 'prompt') {
      const template = await textOf(layer)
      if (template !== noTemplate) recipe = { ...recipe, template }
    }
    if (kind === 'system') recipe = { ...recipe, system: await textOf(layer) }
    if (kind === 'license') recipe = { ...recipe, license: [...recipe.license, await textOf(layer)] }
    if (kind === 'params') {
      const parameters = parsed(
        Params,
        await textOf(layer, maxJsonBytes),
        `parameters of the model "${name}"`,
      )
      recipe = { ...recipe, parameters }
    }
    if (kind === 'messages') {
      const messages = parsed(Messages, await textOf(layer, maxJsonBytes), `messages of the model "${name}"`)
      recipe = { ...recipe, messages }
    }
  }
  return { recipe, config: withoutNull(config) as ModelConfig }
}

/** And will be as long as the manifest names the same. */
class Damaged extends LlmError {}

/** Go writes `null` for what is not there. */
const withoutNull = (object: object): object =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null))

function parsed<T>(schema: z.ZodType<T>, text: string, what: string): T {
  try {
    const value: unknown = JSON.parse(text)
    if (isDeeper(value)) throw new Error('it is nested too deep')
    return schema.parse(value)
  } catch (cause) {
    throw new Damaged('upstream', `The ${what} cannot be used.`, {}, { cause })
  }
}
