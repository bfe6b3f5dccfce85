/** One model of the store. */
import type { ModelfileDefaults } from './modelfile/defaults.ts'
import type { ModelConfig } from './ollama-store/manifest.ts'

export interface Model {
  /** Always with a tag: `tiny:latest`. */
  readonly name: string
  /** Path of the weights; empty where they are not on this machine. */
  readonly path: string
  /** The weights are missing: the model has to be pulled again. */
  readonly isIncomplete?: true
  /** Bytes of all files of the model. */
  readonly sizeBytes: number
  readonly modifiedAt: Date
  /**
   * 64 hexadecimal digits: SHA-256 of the manifest. For a standalone GGUF file, SHA-256 of path, size, date and adapters:
   * hashing gigabytes would be too slow for a list.
   */
  readonly digest: string
  /** The model is part of the toolkit, and cannot be changed. */
  readonly isBuiltIn: boolean
  /** LoRA adapters; absent where there are none. */
  readonly adapters?: readonly Adapter[]
  /** Paths of the vision and audio projectors. */
  readonly projectors?: readonly string[]
  /** Absent for a standalone GGUF file. */
  readonly defaults?: ModelfileDefaults
  readonly config?: ModelConfig
  /** Name of the model that this one was created from. */
  readonly parent?: string
}

/** A LoRA adapter as it is stored and applied. */
export interface Adapter {
  readonly path: string
  /** Share of the adapter that is added to the weights: 0 is none, 1 all of it. */
  readonly scale: number
  readonly sizeBytes: number
  readonly modifiedAt: Date
}

export const compareNewestFirst = (a: Model, b: Model): number =>
  b.modifiedAt.getTime() - a.modifiedAt.getTime()
