/** Plans which layers a new model inherits from its base model, and which layers contain its own settings. */
import { LlmError } from '../../errors.ts'
import { digestOf } from '../ollama-store/digest.ts'
import {
  type Layer,
  type LayerKind,
  layerKindOf,
  maxJsonBytes,
  maxTextBytes,
} from '../ollama-store/manifest.ts'
import type { Weights } from '../ollama-store/weights.ts'
import type { CreateModelRequest } from './create-request.ts'
import { placeholderTemplate } from './defaults.ts'
import { sortKeys, stringifyGoJson } from './go-json.ts'

export interface LayerPlan {
  /** Layers that the new model shares with its base model. */
  readonly inherited: readonly Layer[]
  readonly added: readonly (readonly [LayerKind, string])[]
}

/** Layer kinds in their order in the manifest. */
const modelfileLayerKinds = ['template', 'system', 'license', 'params', 'messages'] as const

/**
 * Merges the parameters of the request with the parameters of the base model, by name. Adds the licenses of
 * the request to the licenses of the base model. Other settings in the request replace the base model's
 * settings.
 */
export function planLayers(spec: CreateModelRequest, { layers, parameters }: Weights): LayerPlan {
  const all = { ...parameters, ...spec.parameters }
  const texts: Readonly<Partial<Record<LayerKind, string>>> = {
    ...(spec.template && { template: spec.template }),
    ...(spec.system && { system: spec.system }),
    ...(Object.keys(all).length > 0 && { params: stringifyGoJson(sortKeys(all)) }),
    ...(spec.messages?.length && {
      messages: stringifyGoJson(spec.messages.map(({ role, content }) => ({ role, content }))),
    }),
  }
  const inherited = layers.filter(({ mediaType }) => {
    const kind = layerKindOf(mediaType)
    return !kind || texts[kind === 'prompt' ? 'template' : kind] === undefined
  })
  const isNew = (license: string): boolean => {
    const digest = digestOf(license)
    return !inherited.some((layer) => layer.digest === digest && layerKindOf(layer.mediaType) === 'license')
  }
  const licenses = [...new Set(spec.license)].filter((text) => text !== '' && isNew(text))
  const added = modelfileLayerKinds.flatMap((kind): LayerPlan['added'] => {
    if (kind === 'license') return licenses.map((text) => [kind, text])
    const text = texts[kind]
    return text === undefined || (kind === 'template' && text === placeholderTemplate) ? [] : [[kind, text]]
  })
  return { inherited, added }
}

/** Throws `too_large` if `ManifestReader` would reject the texts later because of their size. */
export function expectWithinLimits({ inherited, added }: LayerPlan, config: string): void {
  const before = inherited.filter(({ mediaType }) => textKinds.includes(layerKindOf(mediaType)))
  const texts = [config, ...added.map(([, text]) => text)]
  const json = [config, ...added.flatMap(([kind, text]) => (jsonKinds.includes(kind) ? [text] : []))]
  const sizes = [...before.map(({ size }) => size), ...texts.map((text) => Buffer.byteLength(text))]
  if (
    sizes.reduce((sum, size) => sum + size, 0) > maxTextBytes ||
    json.some((text) => Buffer.byteLength(text) > maxJsonBytes)
  )
    throw new LlmError('too_large', 'the texts of the model are too long')
}

const jsonKinds: readonly LayerKind[] = ['params', 'messages']
const textKinds: readonly (LayerKind | undefined)[] = [...modelfileLayerKinds, 'prompt']
