/** Model names as in Ollama's `types/model/name.go`. The `:local` suffix follows `internal/modelref`. */

import { invalidRequest } from '../../errors.ts'

/**
 * A valid name, `[host/][namespace/]model[:tag]`, in its original case. Only this file creates a `ModelName`,
 * since its parts become parts of paths.
 */
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

/**
 * Limit in characters, longer than all parts of a valid name together. Clients can send names of several
 * megabytes.
 */
const maxLength = 1_000

/** Ignores a `:local` suffix. Returns `undefined` for text that is not a name. */
export const parseModelName = (text: string): ModelName | undefined =>
  text.length > maxLength ? undefined : parseName(text.trim().replace(localSuffix, ''))

/** Keeps `:local` as a tag, since a store may contain a model with this tag. */
export const parseExactName = (text: string): ModelName | undefined =>
  text.length > maxLength ? undefined : parseName(text.trim())

function parseName(text: string): ModelName | undefined {
  const [path, tag] = splitTag(text)
  const [rest, model] = splitLast(path)
  const [origin, namespace] = rest === undefined ? [undefined, defaults.namespace] : splitLast(rest)
  const host = origin === undefined ? defaults.host : origin.replace(scheme, '')
  return toModelName({ host, namespace, model, tag })
}

/** Returns `undefined` if a part is invalid. */
export function toModelName(name: NameParts): ModelName | undefined {
  const isValid = Object.entries(partPatterns).every(([part, pattern]) =>
    pattern.test(name[part as keyof NameParts]),
  )
  return isValid ? (name as ModelName) : undefined
}

/** Returns the shortest form with the tag, such as `tiny:latest` or `user/tiny:8b`. */
export function displayName({ host, namespace, model, tag }: ModelName): string {
  const shown = `${model}:${tag}`
  if (!isEqualIgnoringCase(host, defaults.host)) return `${host}/${namespace}/${shown}`
  return isEqualIgnoringCase(namespace, defaults.namespace) ? shown : `${namespace}/${shown}`
}

/** Returns the name with all parts, such as `registry.ollama.ai/library/tiny:latest`. */
export const fullName = ({ host, namespace, model, tag }: ModelName): string =>
  `${host}/${namespace}/${model}:${tag}`

/** Throws `invalid_request` for `undefined`, the result of parsing an invalid name. */
export function expectName(name: ModelName | undefined): ModelName {
  if (name) return name
  throw invalidRequest('invalid model name', { param: 'model' })
}

/**
 * Throws `invalid_request` for a name that cannot be a path of this system: on Windows, a host with a port, since a colon
 * names a stream of a file, and names of devices.
 */
export function expectStorable(name: ModelName, platform = process.platform): void {
  if (platform !== 'win32') return
  const wrong = [name.host, name.namespace, name.model, name.tag].find(
    (part) => part.includes(':') || part.endsWith('.') || deviceName.test(part),
  )
  if (wrong !== undefined)
    throw invalidRequest(
      `model: Windows cannot store "${displayName(name)}", because no folder there can be named "${wrong}". Use another name, or a registry without a port.`,
      { param: 'model' },
    )
}

/** Names that Windows reserves, with any extension. */
const deviceName = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i

/** Returns a key for comparisons. Names that differ only in case have the same key. */
export const nameKey = (name: ModelName): string => fullName(name).toLowerCase()

/** Returns `undefined` for text that is not a name. */
export function parseNameKey(text: string): string | undefined {
  const name = parseModelName(text)
  return name && nameKey(name)
}

/** Returns the name with its `:local` suffix and the name without it, since a store may contain either. */
export function candidateNames(text: string): readonly ModelName[] {
  const names = [parseExactName(text), parseModelName(text)].flatMap((name) => name ?? [])
  return [...new Map(names.map((name) => [nameKey(name), name])).values()]
}

/** Suffix that marks local models in Ollama, as opposed to cloud models. */
const localSuffix = /(:local)+$/i
/** URL scheme before the host. It is not part of a name. */
const scheme = /^.*?:\/\//s

/** A colon before the last slash is part of the host, as in `localhost:5000/team/tiny`. */
function splitTag(text: string): readonly [path: string, tag: string] {
  const colon = text.lastIndexOf(':')
  if (colon <= text.lastIndexOf('/')) return [text, defaults.tag]
  return [text.slice(0, colon), text.slice(colon + 1)]
}

/** Splits at the last slash. Keeps empty parts, so that `toModelName` rejects them. */
function splitLast(text: string): readonly [front: string | undefined, last: string] {
  const slash = text.lastIndexOf('/')
  return slash === -1 ? [undefined, text] : [text.slice(0, slash), text.slice(slash + 1)]
}

const isEqualIgnoringCase = (a: string, b: string): boolean => a.toLowerCase() === b
