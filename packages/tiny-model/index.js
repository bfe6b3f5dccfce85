import { fileURLToPath } from 'node:url'

/** Where the GGUF file of the built-in model lies on this machine. */
export const modelPath = fileURLToPath(new URL('./tiny-chat.gguf', import.meta.url))
