/** Decides which models a caller may use. */
import { LlmError } from '../errors.ts'
import { createNameMatcher, isPattern } from './name-pattern.ts'
import { candidateNames, displayName, nameKey } from './ollama-store/name.ts'
import { withTag } from './ollama-store/standalone-files.ts'
import { withoutDigest } from './pinned-name.ts'

/**
 * @param allowed names of models, without digests, and patterns in which `*` stands for any characters. @default all models
 */
export function createModelFilter(allowed: readonly string[] | undefined): (name: string) => boolean {
  if (!allowed) return () => true
  const keys = new Set(allowed.filter((entry) => !isPattern(entry)).flatMap(nameKeysOf))
  const patterns = allowed.filter(isPattern).map(createNameMatcher)
  return (given) => {
    const name = withoutDigest(given)
    return (
      nameKeysOf(name).every((key) => keys.has(key)) ||
      (patterns.length > 0 && shownNamesOf(name).every((shown) => patterns.some((matches) => matches(shown))))
    )
  }
}

/** The names of all models that an entry can mean, as lists show them. */
function shownNamesOf(text: string): readonly string[] {
  const names = candidateNames(text)
  return names.length > 0 ? names.map(displayName) : [text]
}

/**
 * Returns the name keys of all models that an entry of the filter can mean. `tiny:local` can mean the model
 * with this full name, or the model `tiny`, whose name can have the suffix `:local`.
 */
function nameKeysOf(text: string): readonly string[] {
  const names = candidateNames(text)
  return names.length > 0 ? names.map(nameKey) : [withTag(text)]
}

export const modelNotAllowed = (name: string): LlmError =>
  new LlmError('permission', `This caller may not use the model "${name.slice(0, 200).toWellFormed()}".`)
