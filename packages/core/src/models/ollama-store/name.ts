/** Model names. Shape: Ollama `types/model/name.go`, and the `:local` suffix of `internal/modelref`. */

import { invalidRequest } from '../../errors.ts'

/** `[host/][namespace/]model[:tag]` in its original case. Created only in this file: the parts become parts of paths. */
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

/** Longer than all parts together. Names from clients can have megabytes. */
const maxLength = 1_000

/** Ignores a `:local` suffix. `undefined` for text that is no name. */
export const parseModelName = (text: string): ModelName | undefined =>
  text.length > maxLength ? undefined : parseName(text.trim().replace(localSuffix, ''))

/** Reads `:local` as a tag: a store may contain such a name. */
export const parseExactName = (text: string): ModelName | undefined =>
  text.length > maxLength ? undefined : parseName(text.trim())

function parseName(text: string): ModelName | undefined {
  const [path, tag] = splitTag(text)
  const [rest, model] = splitLast(path)
  const [origin, namespace] = rest === undefined ? [undefined, defaults.namespace] : splitLast(rest)
  const host = origin === undefined ? defaults.host : origin.replace(scheme, '')
  return toModelName({ host, namespace, model, tag })
}

/** `undefined` where a part is invalid. */
export function toModelName(name: NameParts): ModelName | undefined {
  const isValid = Object.entries(partPatterns).every(([part, pattern]) =>
    pattern.test(name[part as keyof NameParts]),
  )
  return isValid ? (name as ModelName) : undefined
}

/** The shortest form that keeps the tag: `tiny:latest`, `user/tiny:8b`. */
export function displayName({ host, namespace, model, tag }: ModelName): string {
  const shown = `${model}:${tag}`
  if (!isEqualIgnoringCase(host, defaults.host)) return `${host}/${namespace}/${shown}`
  return isEqualIgnoringCase(namespace, defaults.namespace) ? shown : `${namespace}/${shown}`
}

/** All parts: `registry.ollama.ai/library/tiny:latest`. */
export const fullName = ({ host, namespace, model, tag }: ModelName): string =>
  `${host}/${namespace}/${model}:${tag}`

/** Throws `invalid_request` where a text did not parse. */
export function expectName(name: ModelName | undefined): ModelName {
  if (name) return name
  throw invalidRequest('invalid model name', { param: 'model' })
}

/** Equal for names of the same model, which differ only in case. */
export const nameKey = (name: ModelName): string => fullName(name).toLowerCase()

/** `undefined` for text that is no name. */
export function parseNameKey(text: string): string | undefined {
  const name = parseModelName(text)
  return name && nameKey(name)
}

/** The text with its `:local` suffix and without: a store may contain either. */
export function candidateNames(text: string): readonly ModelName[] {
  const names = [parseExactName(text), parseModelName(text)].flatMap((name) => name ?? [])
  return [...new Map(names.map((name) => [nameKey(name), name])).values()]
}

/** Ollama's mark of local models, as opposed to cloud models. */
const localSuffix = /(:local)+$/i
/** Ignored: a URL scheme is no part of a name. */
const scheme = /^.*?:\/\//s

/** A colon before the last slash is part of the host: `localhost:5000/team/tiny`. */
function splitTag(text: string): readonly [path: string, tag: string] {
  const colon = text.lastIndexOf(':')
  if (colon <= text.lastIndexOf('/')) return [text, defaults.tag]
  return [text.slice(0, colon), text.slice(colon + 1)]
}

/** Keeps empty parts beside a slash, which are invalid. */
function splitLast(text: string): readonly [front: string | undefined, last: string] {
  const slash = text.lastIndexOf('/')
  return slash === -1 ? [undefined, text] : [text.slice(0, slash), text.slice(slash + 1)]
}

const isEqualIgnoringCase = (a: string, b: string): boolean => a.toLowerCase() === b
