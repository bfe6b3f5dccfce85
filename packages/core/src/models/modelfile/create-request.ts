/** Types for creating a model: the request, and the parts of the model store that `createModel` needs. */
import type { Blobs, ManifestEntry, Manifests } from '../ollama-store/store-contracts.ts'
import type { Progress, TransferOptions } from '../registry/progress.ts'
import type { ModelfileMessage } from './defaults.ts'

/** Has the fields of "Create a model" in the Ollama API reference. */
export interface CreateModelRequest {
  readonly name: string
  /**
   * Name of a base model, which is pulled if it is missing, unless the name has a digest. A blob name, `sha256-…`, stands for uploaded
   * weights without defaults.
   */
  readonly from?: string
  /** Maps the file names of uploaded GGUF files to their digests. */
  readonly files?: Readonly<Record<string, string>>
  /** Maps the file name of an uploaded LoRA adapter to its digest. At most one adapter is supported. */
  readonly adapters?: Readonly<Record<string, string>>
  readonly template?: string
  readonly system?: string
  readonly license?: readonly string[]
  readonly parameters?: Readonly<Record<string, unknown>>
  readonly messages?: readonly ModelfileMessage[]
  /** Rejected if set: models must be quantized before the upload. */
  readonly quantize?: string
  readonly renderer?: string
  readonly parser?: string
  /** Minimum Ollama version that the model needs, such as `0.14.0`. */
  readonly requires?: string
  /**
   * Overrides of the model's configuration, such as `capabilities`, `model_family` or `context_length`.
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
