/** Options for stored responses and conversations. */
import { type ByteSize, type Duration, toBytes, toMs } from '../units.ts'
import { checkKeys, describeValue, parseOption } from './check.ts'

export interface ResponseOptions {
  /**
   * Where `/v1/responses` stores responses and conversations: in the memory of this process, or in the option
   * `database`, which several processes need. `false` stores nothing.
   *
   * @default 'memory'
   */
  readonly store?: 'memory' | 'database' | false | undefined
  /** Size of the responses and conversations of all tenants, in bytes or with a unit. @default '256mb' */
  readonly maxBytes?: ByteSize | undefined
  /** Size of the responses and conversations of one tenant. @default a quarter of `maxBytes` */
  readonly maxBytesPerTenant?: ByteSize | undefined
  /** How long a response or conversation is kept after its last use. At least 1 s. @default '1h' */
  readonly maxAge?: Duration | undefined
}

export interface ResolvedResponseOptions {
  readonly store: 'memory' | 'database' | false
  readonly maxBytes: number
  readonly maxBytesPerTenant: number
  readonly maxAgeMs: number
}

/** @param hasDatabase whether the app has a database for keys and usage */
export function resolveResponseOptions(
  given: ResponseOptions = {},
  hasDatabase: boolean,
): ResolvedResponseOptions {
  checkKeys('responses.', given, ['store', 'maxBytes', 'maxBytesPerTenant', 'maxAge'])
  const { store = 'memory' } = given
  if (store !== 'memory' && store !== 'database' && store !== false)
    throw new TypeError(
      `Expected \`responses.store\` to be 'memory', 'database' or false, got ${describeValue(store)}`,
    )
  if (store === 'database' && !hasDatabase)
    throw new TypeError("Expected the option `database`, which `responses.store: 'database'` needs")
  const maxAgeMs = Math.round(parseOption('responses.maxAge', () => toMs(given.maxAge ?? '1h')))
  if (maxAgeMs < 1_000) throw new TypeError('Expected `responses.maxAge` to be at least 1 s')
  const bytesOf = (name: 'maxBytes' | 'maxBytesPerTenant', fallback: ByteSize): number =>
    Math.round(parseOption(`responses.${name}`, () => toBytes(given[name] ?? fallback)))
  const maxBytes = bytesOf('maxBytes', '256mb')
  return { store, maxBytes, maxBytesPerTenant: bytesOf('maxBytesPerTenant', maxBytes / 4), maxAgeMs }
}
