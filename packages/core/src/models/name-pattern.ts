/** Matches names of models with the entries of an option: names, and patterns in which `*` stands for any characters. */
import { nameKey, parseModelName } from './ollama-store/name.ts'
import { withTag } from './ollama-store/standalone-files.ts'

export const isPattern = (entry: string): boolean => entry.includes('*')

/** Rank of an entry: a name comes before all patterns, and a pattern with more characters before the others. */
export const specificityOf = (entry: string): number =>
  isPattern(entry) ? entry.replaceAll('*', '').length : Number.POSITIVE_INFINITY

/** An entry without `*` is a name, such as `llama3.2`, which means `llama3.2:latest`. */
export function createNameMatcher(entry: string): (name: string) => boolean {
  if (isPattern(entry)) {
    const matches = createTextMatcher(entry)
    return (name) => matches(withTag(name))
  }
  const key = matchKeyOf(entry)
  return (name) => matchKeyOf(name) === key
}

/** Ignores case. */
export function createTextMatcher(pattern: string): (text: string) => boolean {
  const [start = '', ...others] = pattern.toLowerCase().split('*')
  const end = others.pop() ?? ''
  return (given) => {
    const text = given.toLowerCase()
    let from = start.length
    if (!text.startsWith(start) || !text.endsWith(end)) return false
    // The first occurrence of each part leaves the most text for the others. A regular expression could take long.
    for (const part of others) {
      const index = text.indexOf(part, from)
      if (index === -1) return false
      from = index + part.length
    }
    return from <= text.length - end.length
  }
}

/** Equal for names that mean the same model. Some names of standalone files and of custom engines are not Ollama names. */
export function matchKeyOf(text: string): string {
  const name = parseModelName(text)
  return name ? nameKey(name) : withTag(text).toLowerCase()
}
