/** Types for creating a model: the request, and the parts of the model store that `createModel` needs. */
import type { Blobs, ManifestEntry, Manifests } from '../ollama-store/store-contracts.ts'
import type { Progress, TransferOptions } from '../registry/progress.ts'
import type { ModelfileMessage } from './defaults.ts'

/** Has the fields of "Create a model" in the Ollama API reference. */
export interface CreateModelRequest {
  /** Name of the new model. A model of the same name is replaced. */
  readonly name: string
  /**
   * Name of a base model, which is pulled if it is missing, unless the name has a digest. A blob name, `sha256-…`, stands for uploaded
   * weights without defaults.
   */
  readonly from?: string
  /** Maps the file names of uploaded GGUF files to their digests. @default none */
  readonly files?: Readonly<Record<string, string>>
  /**
   * Maps the file name of an uploaded LoRA adapter to its digest. At most one adapter is supported.
   *
   * @default none
   */
  readonly adapters?: Readonly<Record<string, string>>
  /** Go template that replaces the chat template. @default that of the base model */
  readonly template?: string
  /** System message. @default that of the base model */
  readonly system?: string
  /** Texts of licences. @default those of the base model */
  readonly license?: readonly string[]
  /** Parameters by their Ollama names, such as `temperature`. @default those of the base model */
  readonly parameters?: Readonly<Record<string, unknown>>
  /** Messages at the start of every conversation. @default those of the base model */
  readonly messages?: readonly ModelfileMessage[]
  /** Rejected if set: models must be quantized before the upload. @default none */
  readonly quantize?: string
  /**
   * Name of the renderer that Ollama uses for this model. Stored, not used.
   *
   * @default that of the base model
   */
  readonly renderer?: string
  /** Name of the parser that Ollama uses for this model. Stored, not used. @default that of the base model */
  readonly parser?: string
  /** Minimum Ollama version that the model needs, such as `0.14.0`. @default none */
  readonly requires?: string
  /**
   * Overrides of the model's configuration, such as `capabilities`, `model_family` or `context_length`.
   *
   * @default none
   */
  readonly info?: Readonly<Record<string, unknown>>
}

export interface CreateDependencies {
  readonly blobs: Blobs
  readonly manifests: Manifests
  pull(name: string, options: TransferOptions): AsyncIterable<Progress>
  /** Resolves a name to a manifest, or to the path of a standalone GGUF file. */
  find(name: string): Promise<{ readonly entry: ManifestEntry } | { readonly path: string } | undefined>
  /** Whether to remove blobs that only the replaced model used. */
  readonly prune: boolean
}
