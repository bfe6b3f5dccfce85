/** Checks options, and parses environment variables as Ollama does. */
import { homedir } from 'node:os'
import { join } from 'node:path'

/** Throws for an unknown option. A misspelt option would otherwise be ignored silently. */
export function checkKeys(group: string, options: object, names: readonly string[]): void {
  checkObject(group.replace(/\.$/, ''), options)
  for (const name of Object.keys(options)) {
    if (!names.includes(name))
      throw new TypeError(
        `Unknown option \`${group}${name}\`, expected one of: ${names.map((one) => group + one).join(', ')}`,
      )
  }
}

/** @param option empty for the options as a whole */
export function checkObject(option: string, value: unknown): void {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return
  const given = value === null || Array.isArray(value) ? JSON.stringify(value) : describeValue(value)
  throw new TypeError(
    option ? `Expected \`${option}\` to be an object, got ${given}` : `Expected options, got ${given}`,
  )
}

export function checkMethods(option: string, value: object | undefined, names: readonly string[]): void {
  for (const name of names) {
    if (value !== undefined && typeof (value as Record<string, unknown>)?.[name] !== 'function')
      throw new TypeError(`Expected \`${option}\` to have the method ${name}()`)
  }
}

export function checkFunction(option: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'function')
    throw new TypeError(`Expected \`${option}\` to be a function, got ${describeValue(value)}`)
}

export function checkBoolean(option: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'boolean')
    throw new TypeError(`Expected \`${option}\` to be true or false, got ${describeValue(value)}`)
}

export function checkStrings(option: string, value: unknown): void {
  if (!Array.isArray(value) || !value.every((one) => typeof one === 'string'))
    throw new TypeError(`Expected \`${option}\` to be a list of strings, got ${JSON.stringify(value)}`)
}

export function checkInteger<T>(option: string, value: T, min: number, max: number): T {
  if (value === undefined) return value
  if (Number.isInteger(value) && Number(value) >= min && Number(value) <= max) return value
  throw new TypeError(
    `Expected \`${option}\` to be a whole number from ${min} to ${max}, got ${describeValue(value)}`,
  )
}

export function checkNumber(option: string, value: unknown, min: number, max: number): void {
  if (!(typeof value === 'number' && value >= min && value <= max))
    throw new TypeError(
      `Expected \`${option}\` to be a number from ${min} to ${max}, got ${describeValue(value)}`,
    )
}

/** Runs a parser, and adds the name of the option to its error. */
export function parseOption<Value>(option: string, parse: () => Value): Value {
  try {
    return parse()
  } catch (cause) {
    throw new TypeError(`\`${option}\`: ${(cause as Error).message}`, { cause })
  }
}

/** Parses a boolean in the spellings that Go's `strconv.ParseBool` accepts. */
export function parseBoolean(option: string, value: string | undefined): boolean | undefined {
  if (value === undefined) return undefined
  if (/^(?:1|t|T|TRUE|true|True)$/.test(value)) return true
  if (/^(?:0|f|F|FALSE|false|False)$/.test(value)) return false
  throw new TypeError(`Expected \`${option}\` to be 1 or 0, got ${describeValue(value)}`)
}

/** Trims spaces and quotes as Ollama does. Returns undefined for an empty variable. */
export const trimVariable = (value: string | undefined): string | undefined =>
  value?.trim().replace(/^["']+|["']+$/g, '') || undefined

export const describeValue = (value: unknown): string => `${String(value)} (${typeof value})`

export const expandHome = (path: string): string =>
  /^~(?=$|[\\/])/.test(path) ? join(homedir(), path.slice(1)) : path
