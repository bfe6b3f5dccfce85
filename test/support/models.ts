import { fileURLToPath } from 'node:url'

/**
 * A Llama model with random weights and a real vocabulary. It emits random text and hardly ever emits an end
 * token.
 */
export const noiseModel = fileURLToPath(new URL('../models/tiny-llama-spm.f16.gguf', import.meta.url))

/** A BERT embedding model with random weights. */
export const encoderModel = fileURLToPath(new URL('../models/tiny-bert.f16.gguf', import.meta.url))

/** A recurrent model (Mamba) with random weights. Its state cannot be truncated to fewer tokens. */
export const recurrentModel = fileURLToPath(new URL('../models/tiny-mamba.f16.gguf', import.meta.url))

/** A Gemma 3 model with random weights. Most of its layers see only the last 128 tokens. */
export const slidingWindowModel = fileURLToPath(
  new URL('../models/tiny-gemma3-swa.f16.gguf', import.meta.url),
)

/**
 * The built-in model as it was trained, with attention heads of 32 dimensions. The recorded answers of Ollama
 * come from this file.
 */
export const narrowModel = fileURLToPath(new URL('../models/tiny-chat.narrow.gguf', import.meta.url))
