/** Counts calls over time, and writes the counts in batches. */
import { toStorableId } from '../../limits/demand.ts'
import { type Database, type Queries, type SqlValue, UncertainOutcome } from '../../storage/database.ts'
import { bucketOf } from './buckets.ts'

/** A call that has ended. */
export interface CountedTraffic {
  /** Empty for the app itself. */
  readonly caller: string
  readonly tenant: string
  /** Empty for a model that does not exist, because clients choose such names. */
  readonly model: string
  readonly isError: boolean
  readonly inputTokens: number
  readonly cachedInputTokens: number
  readonly outputTokens: number
  readonly nanoUsd: number
  readonly durationMs: number
  readonly firstTokenMs: number | undefined
}

export const hourMs = 3_600_000
export const dayMs = 24 * hourMs

const sums = ['calls', 'errors', 'input_tokens', 'cached_input_tokens', 'output_tokens', 'nano_usd'] as const
type Sums = Record<(typeof sums)[number], number>

interface TrafficEntry extends Sums {
  readonly key: readonly SqlValue[]
  readonly tenant: string | null
  /** Number of calls by measure and bucket, such as `duration 31`. */
  readonly times: Map<string, number>
}

/** How often counts are written while there are calls, in ms. What was counted since is lost when the process is killed. */
const writeEveryMs = 2_000
/** Rows that wait for a database that fails. */
const maxKeptEntries = 20_000
/** Rows per statement. */
const batchSize = 50

export class TrafficRecorder {
  readonly #database: Database
  readonly #onError: (cause: unknown) => void
  readonly #now: () => number
  #entries = new Map<string, TrafficEntry>()
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> = Promise.resolve()
  #isClosed = false

  /** @param now time in ms since 1970 */
  constructor(database: Database, onError: (cause: unknown) => void, now: () => number = Date.now) {
    this.#database = database
    this.#onError = onError
    this.#now = now
  }

  add(call: CountedTraffic): void {
    const now = this.#now()
    for (const width of [hourMs, dayMs])
      for (const isTotal of [0, 1]) this.#count(call, [width, isTotal, now - (now % width)])
    this.#schedule()
  }

  #schedule(): void {
    if (!this.#isClosed) this.#timer ??= setTimeout(() => void this.write(), writeEveryMs).unref()
  }

  #count(call: CountedTraffic, interval: readonly [number, number, number]): void {
    const isTotal = interval[1] === 1
    const key = [...interval, isTotal ? '' : toStorableId(call.caller), toStorableId(call.model)]
    const id = JSON.stringify(key)
    const entry = this.#entries.get(id) ?? createEntry(key, isTotal ? null : toStorableId(call.tenant))
    this.#entries.set(id, entry)
    entry.calls += 1
    entry.errors += call.isError ? 1 : 0
    entry.input_tokens += toCount(call.inputTokens)
    entry.cached_input_tokens += toCount(call.cachedInputTokens)
    entry.output_tokens += toCount(call.outputTokens)
    entry.nano_usd += toCount(call.nanoUsd)
    countTime(entry, 'duration', call.durationMs)
    if (call.firstTokenMs !== undefined) countTime(entry, 'first_token', call.firstTokenMs)
  }

  /** Writes what was counted. Never rejects: after a failure, the next write tries again. */
  write(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#writing = this.#writing.then(async () => {
      const entries = this.#entries
      this.#entries = new Map()
      if (entries.size > 0)
        await this.#store([...entries.values()]).catch((cause) => this.#keep(entries, cause))
    })
    return this.#writing
  }

  /** Writes the rest, once. What then fails is lost, because the database closes. */
  close(): Promise<void> {
    this.#isClosed = true
    return this.write()
  }

  /** Adds counts that could not be written to those that came since. */
  #keep(entries: ReadonlyMap<string, TrafficEntry>, cause: unknown): void {
    this.#onError(cause)
    // The outcome of the commit is unknown. Counts that are written twice would be worse than missing ones.
    if (cause instanceof UncertainOutcome) return
    for (const [id, entry] of entries) {
      const newer = this.#entries.get(id)
      if (newer) addEntry(newer, entry)
      else if (this.#entries.size < maxKeptEntries) this.#entries.set(id, entry)
    }
    this.#schedule()
  }

  #store(entries: readonly TrafficEntry[]): Promise<void> {
    // The same order in all processes, so that their transactions do not wait for each other in a circle.
    const sorted = [...entries].sort((a, b) => (JSON.stringify(a.key) < JSON.stringify(b.key) ? -1 : 1))
    const times = sorted.flatMap(({ key, times }) =>
      [...times].sort().map(([time, calls]) => [...key, ...parseTime(time), calls]),
    )
    return this.#database.transaction(async (queries) => {
      await upsert(queries, {
        table: 'modelmount_traffic',
        keys: [...keyColumns],
        values: ['tenant', ...sums],
        added: sums,
        rows: sorted.map((entry) => [...entry.key, entry.tenant, ...sums.map((sum) => entry[sum])]),
      })
      await upsert(queries, {
        table: 'modelmount_traffic_times',
        keys: [...keyColumns, 'measure', 'bucket'],
        values: ['calls'],
        added: ['calls'],
        rows: times,
      })
    })
  }
}

const keyColumns = ['width_ms', 'is_total', 'start', 'caller', 'model'] as const

interface Upsert {
  readonly table: string
  readonly keys: readonly string[]
  readonly values: readonly string[]
  /** Columns that are added to the row that exists. */
  readonly added: readonly string[]
  readonly rows: readonly (readonly SqlValue[])[]
}

async function upsert({ query }: Queries, { table, keys, values, added, rows }: Upsert): Promise<void> {
  const columns = [...keys, ...values]
  // Other values are those of the last call.
  const assignments = values
    .map((column) =>
      added.includes(column)
        ? `${column} = ${table}.${column} + excluded.${column}`
        : `${column} = excluded.${column}`,
    )
    .join(', ')
  const row = `(${columns.map(() => '?').join(', ')})`
  for (let start = 0; start < rows.length; start += batchSize) {
    const batch = rows.slice(start, start + batchSize)
    await query(
      `INSERT INTO ${table} (${columns.join(', ')}) VALUES ${batch.map(() => row).join(', ')}
       ON CONFLICT (${keys.join(', ')}) DO UPDATE SET
         ${assignments}`,
      batch.flat(),
    )
  }
}

/** An engine of the host app may report anything. The database takes whole numbers only. */
const toCount = (value: number): number => (Number.isFinite(value) ? Math.max(0, Math.round(value)) : 0)

const createEntry = (key: TrafficEntry['key'], tenant: string | null): TrafficEntry => ({
  ...{ key, tenant, times: new Map() },
  ...{ calls: 0, errors: 0, input_tokens: 0, cached_input_tokens: 0, output_tokens: 0, nano_usd: 0 },
})

function addEntry(to: TrafficEntry, from: TrafficEntry): void {
  for (const sum of sums) to[sum] += from[sum]
  for (const [time, calls] of from.times) to.times.set(time, (to.times.get(time) ?? 0) + calls)
}

function countTime({ times }: TrafficEntry, measure: 'duration' | 'first_token', ms: number): void {
  const time = `${measure} ${bucketOf(ms)}`
  times.set(time, (times.get(time) ?? 0) + 1)
}

function parseTime(time: string): readonly [measure: string, bucket: number] {
  const [measure = '', bucket] = time.split(' ')
  return [measure, Number(bucket)]
}
