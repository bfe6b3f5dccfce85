/**
 * A manifest lists the configuration and layers of a model by digest. Follows Ollama's packages `manifest`
 * and `types/model`.
 */
import { z } from 'zod'
import { type Digest, parseDigest } from './digest.ts'

export const manifestMediaType = 'application/vnd.docker.distribution.manifest.v2+json'
export const configMediaType = 'application/vnd.docker.container.image.v1+json'

const mediaTypes = {
  model: 'application/vnd.ollama.image.model',
  projector: 'application/vnd.ollama.image.projector',
  adapter: 'application/vnd.ollama.image.adapter',
  template: 'application/vnd.ollama.image.template',
  /** Former name of `template`. */
  prompt: 'application/vnd.ollama.image.prompt',
  system: 'application/vnd.ollama.image.system',
  params: 'application/vnd.ollama.image.params',
  messages: 'application/vnd.ollama.image.messages',
  license: 'application/vnd.ollama.image.license',
} as const
export type LayerKind = keyof typeof mediaTypes

export const mediaTypeOf = (kind: LayerKind): string => mediaTypes[kind]

/** Returns `undefined` for an unknown media type. Layers of unknown types are stored, but not read. */
export const layerKindOf = (mediaType: string): LayerKind | undefined =>
  (Object.keys(mediaTypes) as LayerKind[]).find((kind) => mediaTypes[kind] === mediaType)

/** Maximum size of all texts of one model together. The longest licenses take a hundredth of it. */
export const maxTextBytes = 8 * 1024 * 1024
/** Maximum size of each JSON text of a model: its configuration, parameters or messages. */
export const maxJsonBytes = 256 * 1024

export interface Layer {
  readonly mediaType: string
  readonly digest: Digest
  readonly size: number
  /** Name of the base model or of the uploaded file. */
  readonly from?: string
}

export interface Manifest {
  readonly config: Layer
  readonly layers: readonly Layer[]
}

/** Content of the `config` blob, as in Ollama's `types/model/config.go`. */
export interface ModelConfig {
  /** Format of the weights, such as `gguf`. */
  readonly model_format?: string
  /** Architecture, such as `llama`. */
  readonly model_family?: string
  /** Architectures of weights and projectors. */
  readonly model_families?: readonly string[] | null
  /** Parameter count, such as `3.64M`. */
  readonly model_type?: string
  /** Quantization, such as `Q4_K_M`. */
  readonly file_type?: string
  /** Name of the renderer that Ollama uses for this model. */
  readonly renderer?: string
  /** Name of the parser that Ollama uses for this model. */
  readonly parser?: string
  /** Minimum Ollama version that the model needs, such as `0.14.0`. */
  readonly requires?: string
  /** Host of a model that runs in Ollama's cloud. Such a model cannot be used here. */
  readonly remote_host?: string
  /** Name of a model in Ollama's cloud. */
  readonly remote_model?: string
  /** What the model can do, such as `completion` or `tools`. */
  readonly capabilities?: readonly string[]
  /** Context size that the model was trained for, in tokens. */
  readonly context_length?: number
  /** Number of dimensions of an embedding. */
  readonly embedding_length?: number
  /** The model that this one was created from. */
  readonly base_name?: string
}

/** Limit of the size of a manifest. The largest known manifests have a few thousand layers. */
export const maxManifestBytes = 1024 * 1024

const LayerSchema = z.object({
  mediaType: z.string(),
  digest: z.string().transform((text, context): Digest => {
    const digest = parseDigest(text)
    if (digest) return digest
    context.addIssue('no digest')
    return z.NEVER
  }),
  size: z.int().min(0),
  from: z.string().optional(),
})

const ManifestSchema = z.object({
  config: LayerSchema,
  layers: z
    .array(LayerSchema)
    .nullish()
    .transform((layers) => layers ?? []),
})

/** Returns `undefined` for bytes that are not a manifest. */
export function parseManifest(bytes: Uint8Array): Manifest | undefined {
  if (bytes.length > maxManifestBytes) return undefined
  try {
    const { success, data } = ManifestSchema.safeParse(JSON.parse(Buffer.from(bytes).toString()))
    return success ? (data as Manifest) : undefined
  } catch {
    return undefined
  }
}

/** Digests of all blobs of a manifest. */
export const digestsOf = ({ config, layers }: Manifest): readonly Digest[] =>
  [config, ...layers].map(({ digest }) => digest)
