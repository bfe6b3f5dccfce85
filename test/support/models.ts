import { fileURLToPath } from 'node:url'

/** Random weights over a real vocabulary: it says noise, and hardly ever stops by itself. */
export const noiseModel = fileURLToPath(new URL('../models/tiny-llama-spm.f16.gguf', import.meta.url))

/** An encoder, with random weights. */
export const encoderModel = fileURLToPath(new URL('../models/tiny-bert.f16.gguf', import.meta.url))

/** Random weights in a recurrent model: its memory cannot be cut back. */
export const recurrentModel = fileURLToPath(new URL('../models/tiny-mamba.f16.gguf', import.meta.url))

/** Random weights in a model that mostly sees the last 128 tokens: it forgets the others. */
export const slidingWindowModel = fileURLToPath(
  new URL('../models/tiny-gemma3-swa.f16.gguf', import.meta.url),
)

/** The built-in model as it was trained, with heads of 32: what Ollama's answers were recorded with. */
export const narrowModel = fileURLToPath(new URL('../models/tiny-chat.narrow.gguf', import.meta.url))
