/** Options for message batches and for files. */
import { type ByteSize, type Duration, toBytes, toMs } from '../units.ts'
import { checkInteger, checkKeys, describeValue, expandHome, parseOption } from './check.ts'

export interface BatchOptions {
  /**
   * Whether this process runs the requests of batches. In an app of several processes with one database, some can leave
   * that to the others.
   *
   * @default true
   */
  readonly run?: boolean | undefined
  /**
   * How many requests of batches this process runs at once, from 1 to 1,000. They use slots of the model that other calls
   * leave free.
   *
   * @default twice `local.parallel`; 8 with a custom `engine`
   */
  readonly concurrency?: number | undefined
  /** After this time, the requests of a batch that have not begun end as expired. At least 1 s. @default '24h' */
  readonly expiresAfter?: Duration | undefined
  /** How many days results are kept, from the creation of the batch: from 1 to 36,525, or `'forever'`. @default 29 */
  readonly retentionDays?: number | 'forever' | undefined
  /** How many days uploaded files are kept, from 1 to 36,525. @default 30 */
  readonly fileRetentionDays?: number | undefined
  /** Size of a request that creates a batch, and of a file, in bytes or with a unit. @default '256mb' */
  readonly maxBatchBytes?: ByteSize | undefined
  /** Requests of one batch, from 1 to 1,000,000. @default 100,000 */
  readonly maxRequests?: number | undefined
  /** Requests of all batches of a tenant that have not ended, from 1 to 1e9. @default 100,000 */
  readonly maxQueuedRequests?: number | undefined
  /** Size of all batches and files in the database, in bytes or with a unit. @default '10gb' */
  readonly maxBytes?: ByteSize | undefined
  /** Size of all batches and files of one tenant. @default a quarter of `maxBytes` */
  readonly maxBytesPerTenant?: ByteSize | undefined
  /**
   * Path of an SQLite file for batches and files, which is created with the first batch, for an app without a
   * `database`. Then batches have no prices and no spending limits.
   *
   * @default the option `database`
   */
  readonly database?: string | undefined
}

export interface ResolvedBatchSettings {
  readonly run: boolean
  readonly concurrency: number
  readonly expiresAfterMs: number
  /** `Infinity` if results are kept forever. */
  readonly retentionMs: number
  readonly fileRetentionMs: number
  readonly maxBatchBytes: number
  readonly maxItems: number
  readonly maxQueuedItems: number
  readonly maxBytes: number
  readonly maxBytesPerTenant: number
  /** Path of a database of its own. */
  readonly database: string | undefined
}

const dayMs = 86_400_000
const maxDays = 36_525

/**
 * @param parallel sequences that the local engine decodes at once; undefined for a custom engine
 * @param hasDatabase whether the app has a database for keys and usage
 */
export function resolveBatchOptions(
  given: BatchOptions = {},
  parallel: number | undefined,
  hasDatabase: boolean,
): ResolvedBatchSettings {
  checkKeys('batches.', given, [
    'run',
    'concurrency',
    'expiresAfter',
    'retentionDays',
    'fileRetentionDays',
    'maxBatchBytes',
    'maxRequests',
    'maxQueuedRequests',
    'maxBytes',
    'maxBytesPerTenant',
    'database',
  ])
  const { run = true, retentionDays = 29, fileRetentionDays = 30, database } = given
  if (typeof run !== 'boolean')
    throw new TypeError(`Expected \`batches.run\` to be true or false, got ${describeValue(run)}`)
  // A charge and its result are written in one transaction.
  if (database !== undefined && hasDatabase)
    throw new TypeError(
      'Expected no `batches.database`, because the app has a database for keys and usage, which batches use, too',
    )
  if (retentionDays !== 'forever') checkInteger('batches.retentionDays', retentionDays, 1, maxDays)
  const expiresAfterMs = parseOption('batches.expiresAfter', () => toMs(given.expiresAfter ?? '24h'))
  if (expiresAfterMs < 1_000) throw new TypeError('Expected `batches.expiresAfter` to be at least 1 s')
  const bytesOf = (name: 'maxBatchBytes' | 'maxBytes' | 'maxBytesPerTenant', fallback: ByteSize): number =>
    parseOption(`batches.${name}`, () => toBytes(given[name] ?? fallback))
  const maxBytes = bytesOf('maxBytes', '10gb')
  return {
    run,
    concurrency:
      checkInteger('batches.concurrency', given.concurrency, 1, 1_000) ??
      (parallel === undefined ? 8 : 2 * parallel),
    expiresAfterMs,
    retentionMs: retentionDays === 'forever' ? Number.POSITIVE_INFINITY : retentionDays * dayMs,
    fileRetentionMs: checkInteger('batches.fileRetentionDays', fileRetentionDays, 1, maxDays) * dayMs,
    maxBatchBytes: bytesOf('maxBatchBytes', '256mb'),
    maxItems: checkInteger('batches.maxRequests', given.maxRequests, 1, 1e6) ?? 100_000,
    maxQueuedItems: checkInteger('batches.maxQueuedRequests', given.maxQueuedRequests, 1, 1e9) ?? 100_000,
    maxBytes,
    maxBytesPerTenant: bytesOf('maxBytesPerTenant', maxBytes / 4),
    database: database === undefined ? undefined : expandHome(database),
  }
}
