/** Finds the built-in model, which comes with an optional package. */
import type { ModelSource } from './ollama-store/standalone-files.ts'

export async function findBuiltInModel(): Promise<ModelSource | undefined> {
  try {
    const { modelPath } = await import('@modelmount/tiny-model')
    return { path: modelPath, builtInName: 'tiny' }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return undefined
    throw error
  }
}
