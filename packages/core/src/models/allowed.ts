/** Models by name, for callers who may use some of them only. */
import { LlmError } from '../errors.ts'
import { nameKey, namesOf } from './ollama-store/name.ts'
import { withTag } from './ollama-store/standalone-files.ts'

/** @param allowed absent: all */
export function allows(allowed: readonly string[] | undefined): (name: string) => boolean {
  if (!allowed) return () => true
  const keys = new Set(allowed.flatMap(meaningsOf))
  return (name) => meaningsOf(name).every((key) => keys.has(key))
}

/** `tiny:local` is a name, and another way to say `tiny`. */
function meaningsOf(text: string): readonly string[] {
  const names = namesOf(text)
  return names.length > 0 ? names.map(nameKey) : [withTag(text)]
}

export const notAllowed = (name: string): LlmError =>
  new LlmError('permission', `This caller may not use the model "${name.slice(0, 200).toWellFormed()}".`)
