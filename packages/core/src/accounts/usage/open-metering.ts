/**
 * Opens the rate limiter and the ledger. All processes with the same database share their counts. Without a
 * database, limits are counted in memory and there is no ledger. A `limiterStore` counts limits instead of either.
 */
import type { ClosableRateLimiter, LimiterStore, Limits, RateLimiter, Subject } from '../../limits/limits.ts'
import { MemoryLimiter } from '../../limits/memory.ts'
import { parseNameKey as nameKeyOf } from '../../models/ollama-store/name.ts'
import type { Database } from '../../storage/database.ts'
import type { Prices } from '../prices/pricing.ts'
import type { Ledger, LedgerOptions } from './ledger.ts'
import type { SpendingWarningOptions } from './warnings.ts'

/** Reports of usage and costs: sums, single calls, and the spending of callers. */
export type UsageReports = Pick<Ledger, 'report' | 'calls' | 'spending'>

export interface OpenMeteringOptions {
  readonly prices: Prices
  readonly modelLimits: Readonly<Record<string, Limits>>
  readonly limiterStore: LimiterStore | undefined
  readonly warnings: SpendingWarningOptions
  readonly retentionMs: number
  readonly namesOf: LedgerOptions['namesOf']
  /** Called when the database fails in the background. */
  readonly onError: (cause: unknown) => void
}

export interface OpenedMetering {
  readonly limiter: RateLimiter
  /** Absent without a database. */
  readonly ledger: Ledger | undefined
  /** Returns the subject that counts the calls of all callers of a model. Undefined without limits. */
  readonly modelSubjectOf: (model: string) => Subject | undefined
  readonly usage: UsageReports
  /** Retries failed writes once. The database stays open. */
  close(): Promise<void>
}

export async function openMetering(
  database: Database | undefined,
  options: OpenMeteringOptions,
): Promise<OpenedMetering> {
  const { prices, modelLimits, limiterStore, warnings, retentionMs, namesOf, onError } = options
  const limiter = await openLimiter(limiterStore, database)
  const ledger =
    database && (await openLedgerLazily(database, { prices, keyOf, warnings, retentionMs, namesOf, onError }))
  const byModel = new Map(
    Object.entries(modelLimits).map(([model, limits]) => [
      keyOf(model),
      { id: `model:${keyOf(model)}`, limits },
    ]),
  )
  return {
    limiter,
    ledger,
    modelSubjectOf: (model) => byModel.get(keyOf(model)),
    usage: ledger ?? absentReports,
    close: async () => {
      await ledger?.close()
      await limiter.close()
    },
  }
}

async function openLimiter(
  store: LimiterStore | undefined,
  database: Database | undefined,
): Promise<ClosableRateLimiter> {
  if (store) return store.open({ limits: {} })
  if (!database) return new MemoryLimiter({})
  const { openSqlLimiter } = await import('../../limits/sql.ts')
  return openSqlLimiter(database, { limits: {} })
}

async function openLedgerLazily(
  ...given: Parameters<typeof import('./ledger.ts').openLedger>
): Promise<Ledger> {
  const { openLedger } = await import('./ledger.ts')
  return openLedger(...given)
}

/** `tiny`, `Tiny` and `tiny:latest` name the same model. */
const keyOf = (model: string): string => nameKeyOf(model) ?? model

const rejectWithoutDatabase = async (): Promise<never> => {
  throw new TypeError('Usage is not stored: expected the option `database` or `prices` of createLlm()')
}
const absentReports: UsageReports = {
  report: rejectWithoutDatabase,
  calls: rejectWithoutDatabase,
  spending: rejectWithoutDatabase,
}
