/** The built-in model: there where the optional package is installed. */
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
