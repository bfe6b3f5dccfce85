/** One model of the store. */
import type { ModelDetails } from './gguf/model-details.ts'
import type { ModelfileDefaults } from './modelfile/defaults.ts'
import type { ModelConfig } from './ollama-store/manifest.ts'

/** A model that calls can use. */
export interface Model {
  /** Name with its tag, such as `tiny:latest`. */
  readonly name: string
  /** Path of the weights. Empty if the weights are not on this machine. */
  readonly path: string
  /** `true` if the file of the weights is missing and the model must be pulled again. */
  readonly isIncomplete?: true
  /** Total size of all layers and the configuration, or size of the standalone GGUF file. */
  readonly sizeBytes: number
  /** When the model was last changed. */
  readonly modifiedAt: Date
  /**
   * SHA-256 of the manifest, as 64 hexadecimal digits. For a standalone GGUF file, SHA-256 of path, size,
   * date and LoRA adapters, since hashing gigabytes would be too slow.
   */
  readonly digest: string
  /** Whether this is the model of the package `@modelmount/tiny-model`. It cannot be changed. */
  readonly isBuiltIn: boolean
  /** LoRA adapters. Absent if the model has none. */
  readonly adapters?: readonly Adapter[]
  /** Paths of the vision and audio projectors. */
  readonly projectors?: readonly string[]
  /** Absent for a standalone GGUF file. */
  readonly defaults?: ModelfileDefaults
  /** Configuration from the manifest. Absent for a standalone GGUF file. */
  readonly config?: ModelConfig
  /** Name of the engine that has the model, a key of the option `engines`. Absent for all other models. */
  readonly engine?: string
  /** Details of a model that only the engine knows. Absent for a model of the store, whose file has them. */
  readonly details?: ModelDetails
  /** Name of the model from which this model was created. */
  readonly parent?: string
  /** The dated id of this version. Set by `snapshots()`, and by `get()` with such an id. */
  readonly snapshot?: ModelSnapshot
}

/** A dated id, which means one version of a model. */
export interface ModelSnapshot {
  /** Such as `tiny-20261122`. */
  readonly id: string
  /** When this version was first seen. */
  readonly createdAt: Date
}

/** A LoRA adapter on disk, and its scale. */
export interface Adapter {
  /** Path of the GGUF file. */
  readonly path: string
  /** Factor for the weights of the LoRA adapter: 0 disables the adapter, 1 applies it fully. */
  readonly scale: number
  /** Size of the file, in bytes. */
  readonly sizeBytes: number
  /** When the file was last written. */
  readonly modifiedAt: Date
}

export const compareNewestFirst = (a: Model, b: Model): number =>
  b.modifiedAt.getTime() - a.modifiedAt.getTime()
