/** What a model is made of. Shape: Ollama API reference, "Create a model". */
import type { RecipeMessage } from './recipe.ts'

export interface CreateModel {
  readonly name: string
  /** Another model; pulled first where it is not there. */
  readonly from?: string
  /** Names of GGUF files, and the digests of blobs that hold them. */
  readonly files?: Readonly<Record<string, string>>
  /** LoRA, in the same way. */
  readonly adapters?: Readonly<Record<string, string>>
  readonly template?: string
  readonly system?: string
  readonly license?: readonly string[]
  readonly parameters?: Readonly<Record<string, unknown>>
  readonly messages?: readonly RecipeMessage[]
  readonly quantize?: string
  readonly renderer?: string
  readonly parser?: string
  /** The least version of Ollama that it needs. */
  readonly requires?: string
  /** What its configuration is to say instead: `capabilities`, `model_family`, `context_length` and the like. */
  readonly info?: Readonly<Record<string, unknown>>
}
