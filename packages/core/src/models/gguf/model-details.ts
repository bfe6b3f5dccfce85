/** Details and capabilities of a model. */
import type { Gguf } from './gguf.ts'

/** `insert` means fill-in-the-middle. */
export type Capability = 'completion' | 'embedding' | 'tools' | 'insert' | 'thinking' | 'vision' | 'audio'

/** What the GGUF file of a model says about it. */
export interface ModelDetails extends Pick<Gguf, 'metadata' | 'tensors'> {
  /** Architecture, such as `llama`, or `unknown`. */
  readonly architecture: string
  /**
   * Parameter count that the file declares, else the number of elements in its tensors. Only the first file
   * of a split model is read.
   */
  readonly parameterCount: number
  /** Short form of the parameter count, such as `3.64M` or `7B`. */
  readonly parameterSize: string
  /** Quantization, such as `Q4_K_M`, or `unknown`. */
  readonly quantization: string
  /**
   * Context size that the model was trained for, in tokens. The engine may load it with a smaller context.
   */
  readonly contextSize?: number
  /** Number of dimensions of an embedding. */
  readonly embeddingSize?: number
  /** Jinja template in the GGUF file. */
  readonly chatTemplate?: string
  /** Listed in the same order as in Ollama. */
  readonly capabilities: readonly Capability[]
}
