/** The filter of a caller who may use only some models. */
import { LlmError } from '../errors.ts'
import { candidateNames, nameKey } from './ollama-store/name.ts'
import { withTag } from './ollama-store/standalone-files.ts'

/** @param allowed names of models. @default all models */
export function createModelFilter(allowed: readonly string[] | undefined): (name: string) => boolean {
  if (!allowed) return () => true
  const keys = new Set(allowed.flatMap(nameKeysOf))
  return (name) => nameKeysOf(name).every((key) => keys.has(key))
}

/** Both readings of a text: `tiny:local` is a name, and an alias of `tiny`. */
function nameKeysOf(text: string): readonly string[] {
  const names = candidateNames(text)
  return names.length > 0 ? names.map(nameKey) : [withTag(text)]
}

export const modelNotAllowed = (name: string): LlmError =>
  new LlmError('permission', `This caller may not use the model "${name.slice(0, 200).toWellFormed()}".`)
