/** Finds the built-in model, which comes with an optional package. */
import { findPackageFile } from '../util/package-file.ts'
import type { ModelSource } from './ollama-store/standalone-files.ts'

/** Finds the file of the package by its name: a bundle would contain the code of the package, but not the file. */
export function findBuiltInModel(): ModelSource | undefined {
  const path = findPackageFile('@modelmount/tiny-model/tiny-chat.gguf')
  return path === undefined ? undefined : { path, builtInName: 'tiny' }
}
