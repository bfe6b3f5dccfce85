/** What the audit log stores of ids, names and requested settings: no secrets, and a bounded size. */
import { toStorableId } from '../../limits/demand.ts'

/** @returns JSON, in which PostgreSQL can store every character */
export function toStorableChanges(changes: object): string {
  const fields = Object.entries(changes).flatMap(([name, value]): [string, unknown][] => {
    const json = JSON.stringify({ [name]: value }, hideFields)
    if (json.length <= maxFieldCharacters) return Object.entries(JSON.parse(json) as object)
    return [[name, `(${json.length} characters)`]]
  })
  return JSON.stringify(Object.fromEntries(fields))
}

/** The reason of a limit request, 2,000 characters, is stored whole. */
const maxFieldCharacters = 4_500

function hideFields(name: string, value: unknown): unknown {
  if (typeof value === 'bigint') return `${value}`
  if (secretNames.test(name) && value !== null && typeof value !== 'number') return hidden
  return typeof value === 'string' ? hideSecrets(value) : value
}

/** A client may send a secret where an id belongs. */
export const toAuditedId = (id: string): string => toStorableId(hideSecrets(id))

/** Replaces what a text of PostgreSQL cannot contain. */
export const toAuditedName = (name: string): string =>
  hideSecrets(name).toWellFormed().replaceAll('\0', '\uFFFD')

/** Hides the confidential part of API keys in a text. The rest finds the key in the list. */
const hideSecrets = (text: string): string => text.replaceAll(/(sk-mm-[\da-f]{16}-)[\w-]+/g, `$1${hidden}`)

const hidden = '(hidden)'
/** Settings of later routes that only their names give away. */
const secretNames = /secret|password|credential|authorization|api_?key|token$/i
