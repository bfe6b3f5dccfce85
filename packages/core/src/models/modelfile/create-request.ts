/** The request that creates a model, and the parts of the store that carry it out. */
import type { Blobs, ManifestEntry, Manifests } from '../ollama-store/store-contracts.ts'
import type { Progress, TransferOptions } from '../registry/progress.ts'
import type { ModelfileMessage } from './defaults.ts'

/** Shape: Ollama API reference, "Create a model". */
export interface CreateModelRequest {
  readonly name: string
  /** Another model, pulled first where it is missing. Or a blob, `sha256-…`: its weights alone, without any Modelfile. */
  readonly from?: string
  /** File names, and the digests of the blobs that hold these GGUF files. */
  readonly files?: Readonly<Record<string, string>>
  /** LoRA adapters, given like `files`. */
  readonly adapters?: Readonly<Record<string, string>>
  readonly template?: string
  readonly system?: string
  readonly license?: readonly string[]
  readonly parameters?: Readonly<Record<string, unknown>>
  readonly messages?: readonly ModelfileMessage[]
  /** Rejected: models are quantized before the upload. */
  readonly quantize?: string
  readonly renderer?: string
  readonly parser?: string
  /** Minimum version of Ollama: `0.14.0`. */
  readonly requires?: string
  /** Overrides of the model's configuration: `capabilities`, `model_family`, `context_length` and the like. */
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
