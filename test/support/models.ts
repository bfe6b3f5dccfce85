import { fileURLToPath } from 'node:url'

/** Random weights over a real vocabulary: it says noise, and hardly ever stops by itself. */
export const noiseModel = fileURLToPath(new URL('../models/tiny-llama-spm.f16.gguf', import.meta.url))

/** An encoder, with random weights. */
export const encoderModel = fileURLToPath(new URL('../models/tiny-bert.f16.gguf', import.meta.url))
