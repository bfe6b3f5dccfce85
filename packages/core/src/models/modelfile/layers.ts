/** What is said of a model beside its weights, as layers. */
import { LlmError } from '../../errors.ts'
import { maxJsonBytes, maxTextBytes } from '../ollama-store/describe-manifest.ts'
import { digestOf } from '../ollama-store/digest.ts'
import { type Layer, type LayerKind, layerKind } from '../ollama-store/manifest.ts'
import type { Weights } from '../ollama-store/weights.ts'
import type { CreateModel } from './create.ts'
import { goJson, sorted } from './go-json.ts'
import { noTemplate } from './show.ts'

export interface SaidLayers {
  /** Of the model that it is made from. */
  readonly kept: readonly Layer[]
  readonly added: readonly (readonly [LayerKind, string])[]
}

/** In the order in which they are written. */
const saidKinds = ['template', 'system', 'license', 'params', 'messages'] as const

/** What is said of a model replaces what was said of the one before; licenses are added to it. */
export function layersOf(spec: CreateModel, { layers, parameters }: Weights): SaidLayers {
  const all = { ...parameters, ...spec.parameters }
  const texts: Readonly<Partial<Record<LayerKind, string>>> = {
    ...(spec.template && { template: spec.template }),
    ...(spec.system && { system: spec.system }),
    ...(Object.keys(all).length > 0 && { params: goJson(sorted(all)) }),
    ...(spec.messages?.length && {
      messages: goJson(spec.messages.map(({ role, content }) => ({ role, content }))),
    }),
  }
  const kept = layers.filter(({ mediaType }) => {
    const kind = layerKind(mediaType)
    return !kind || texts[kind === 'prompt' ? 'template' : kind] === undefined
  })
  const isNew = (license: string): boolean => {
    const digest = digestOf(license)
    return !kept.some((layer) => layer.digest === digest && layerKind(layer.mediaType) === 'license')
  }
  const licenses = [...new Set(spec.license)].filter((text) => text !== '' && isNew(text))
  const added = saidKinds.flatMap((kind): SaidLayers['added'] => {
    if (kind === 'license') return licenses.map((text) => [kind, text])
    const text = texts[kind]
    return text === undefined || (kind === 'template' && text === noTemplate) ? [] : [[kind, text]]
  })
  return { kept, added }
}

/** What is longer would be refused when the model is used. Throws `too_large`. */
export function expectReadable({ kept, added }: SaidLayers, config: string): void {
  const before = kept.filter(({ mediaType }) => readAsText.includes(layerKind(mediaType)))
  const texts = [config, ...added.map(([, text]) => text)]
  const json = [config, ...added.flatMap(([kind, text]) => (isJson.includes(kind) ? [text] : []))]
  const sizes = [...before.map(({ size }) => size), ...texts.map((text) => Buffer.byteLength(text))]
  if (
    sizes.reduce((sum, size) => sum + size, 0) > maxTextBytes ||
    json.some((text) => Buffer.byteLength(text) > maxJsonBytes)
  )
    throw new LlmError('too_large', 'what is said of the model is too long')
}

const isJson: readonly LayerKind[] = ['params', 'messages']
const readAsText: readonly (LayerKind | undefined)[] = [...saidKinds, 'prompt']
