/** Reads fields of a server's JSON. They throw an `LlmError` `upstream` for a value of another type. */
import { isRecord } from '../../util/is-record.ts'
import { invalidResponse } from './upstream-errors.ts'

export function parseRecord(json: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch {
    throw invalidResponse('it is no JSON')
  }
  return readRecord(value, 'an event')
}

/** @param what names the value in the error */
export function readRecord(value: unknown, what: string): Record<string, unknown> {
  if (isRecord(value)) return value
  throw invalidResponse(`${what} is no object`)
}

export function readArray(value: unknown, what: string): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw invalidResponse(`${what} is no array`)
}

export function readString(value: unknown, what: string): string {
  if (typeof value === 'string') return value
  throw invalidResponse(`${what} is no string`)
}

/** Returns undefined for an absent value, which servers also write as null. */
export const readOptionalString = (value: unknown, what: string): string | undefined =>
  value === undefined || value === null ? undefined : readString(value, what)

/** Reads a number of tokens. Returns undefined for an absent value. */
export function readCount(value: unknown, what: string): number | undefined {
  if (value === undefined || value === null) return undefined
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number
  throw invalidResponse(`${what} is no count`)
}
