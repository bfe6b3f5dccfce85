/** How models are named. Shape: Ollama `types/model/name.go`, and the `:local` of `internal/modelref`. */

import { invalidRequest } from '../../errors.ts'

/** `[host/][namespace/]model[:tag]`, spelled as it was written. Made here alone: its parts become parts of paths. */
export interface ModelName extends NameParts {
  readonly [brand]: true
}
declare const brand: unique symbol

interface NameParts {
  readonly host: string
  readonly namespace: string
  readonly model: string
  readonly tag: string
}

const defaults = { host: 'registry.ollama.ai', namespace: 'library', tag: 'latest' } as const

const partPatterns: Readonly<Record<keyof NameParts, RegExp>> = {
  host: /^\w[\w.:-]{0,349}$/,
  namespace: /^\w[\w-]{0,79}$/,
  model: /^\w[\w.-]{0,79}$/,
  tag: /^\w[\w.-]{0,79}$/,
}

/** More than the parts may have together. A name can be a client's, and megabytes. */
const maxLength = 1_000

/** Nothing where the text is no name. */
export const parseModelName = (text: string): ModelName | undefined =>
  text.length > maxLength ? undefined : parseName(text.trim().replace(localSuffix, ''))

/** With a `:local` for its tag: a store may have such a name. */
export const parseExactName = (text: string): ModelName | undefined =>
  text.length > maxLength ? undefined : parseName(text.trim())

function parseName(text: string): ModelName | undefined {
  const [path, tag] = splitTag(text)
  const [rest, model] = splitLast(path)
  const [origin, namespace] = rest === undefined ? [undefined, defaults.namespace] : splitLast(rest)
  const host = origin === undefined ? defaults.host : origin.replace(scheme, '')
  return toModelName({ host, namespace, model, tag })
}

/** Nothing where a part cannot be one. */
export function toModelName(name: NameParts): ModelName | undefined {
  const isValid = Object.entries(partPatterns).every(([part, pattern]) =>
    pattern.test(name[part as keyof NameParts]),
  )
  return isValid ? (name as ModelName) : undefined
}

/** As short as it can be said, and always with its tag: `tiny:latest`, `user/tiny:8b`. */
export function displayName({ host, namespace, model, tag }: ModelName): string {
  const shown = `${model}:${tag}`
  if (!isEqualIgnoringCase(host, defaults.host)) return `${host}/${namespace}/${shown}`
  return isEqualIgnoringCase(namespace, defaults.namespace) ? shown : `${namespace}/${shown}`
}

/** With all its parts: `registry.ollama.ai/library/tiny:latest`. */
export const fullName = ({ host, namespace, model, tag }: ModelName): string =>
  `${host}/${namespace}/${model}:${tag}`

/** Throws `invalid_request` where a text did not parse. */
export function expectName(name: ModelName | undefined): ModelName {
  if (name) return name
  throw invalidRequest('invalid model name', { param: 'model' })
}

/** Equal for two names that mean the same model: upper and lower case do not matter. */
export const nameKey = (name: ModelName): string => fullName(name).toLowerCase()

/** Of a text, where it is a name. */
export function parseNameKey(text: string): string | undefined {
  const name = parseModelName(text)
  return name && nameKey(name)
}

/** As it is spelled, and without a `:local` at its end: a store may have either. */
export function candidateNames(text: string): readonly ModelName[] {
  const names = [parseExactName(text), parseModelName(text)].flatMap((name) => name ?? [])
  return [...new Map(names.map((name) => [nameKey(name), name])).values()]
}

/** It says that a model of this machine is meant. All are. */
const localSuffix = /(:local)+$/i
/** Nobody asks which: an address is not what a name is for here. */
const scheme = /^.*?:\/\//s

/** A colon before the last slash belongs to the host: `localhost:5000/team/tiny`. */
function splitTag(text: string): readonly [path: string, tag: string] {
  const colon = text.lastIndexOf(':')
  if (colon <= text.lastIndexOf('/')) return [text, defaults.tag]
  return [text.slice(0, colon), text.slice(colon + 1)]
}

/** Without a slash there is no front. What stands empty beside a slash stays so, and is no valid part. */
function splitLast(text: string): readonly [front: string | undefined, last: string] {
  const slash = text.lastIndexOf('/')
  return slash === -1 ? [undefined, text] : [text.slice(0, slash), text.slice(slash + 1)]
}

const isEqualIgnoringCase = (a: string, b: string): boolean => a.toLowerCase() === b
