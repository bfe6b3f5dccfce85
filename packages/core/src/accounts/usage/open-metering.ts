/** What is metered, put together: in memory where there is no database; where there is one, shared by all who name it. */
import type { ClosableRateLimiter, Limits, RateLimiter } from '../../limits/limits.ts'
import { MemoryLimiter } from '../../limits/memory.ts'
import { parseNameKey as nameKeyOf } from '../../models/ollama-store/name.ts'
import type { Database } from '../../storage/database.ts'
import type { Ledger, LedgerOptions } from './ledger.ts'
import { Metering, type MeteringOptions } from './metering.ts'
import type { Prices } from './pricing.ts'
import type { SpendingWarningOptions } from './warnings.ts'

export type UsageReports = Pick<Ledger, 'report' | 'calls'>

export interface OpenMeteringOptions extends Pick<MeteringOptions, 'tiers' | 'queue' | 'onError'> {
  readonly prices: Prices
  readonly modelLimits: Readonly<Record<string, Limits>>
  readonly warnings: SpendingWarningOptions
  readonly retentionMs: number
  readonly namesOf: LedgerOptions['namesOf']
}

export interface OpenedMetering {
  readonly metering: Metering
  readonly limits: RateLimiter
  readonly usage: UsageReports
  /** What could not be written is tried once more. The database stays open. */
  close(): Promise<void>
}

export async function openMetering(
  database: Database | undefined,
  { prices, modelLimits, warnings, retentionMs, namesOf, ...options }: OpenMeteringOptions,
): Promise<OpenedMetering> {
  const { onError } = options
  const limiter = database ? await openSharedLimiter(database) : new MemoryLimiter({})
  const ledger =
    database && (await openLedgerLazily(database, { prices, keyOf, warnings, retentionMs, namesOf, onError }))
  const byModel = new Map(
    Object.entries(modelLimits).map(([model, limits]) => [
      keyOf(model),
      { id: `model:${keyOf(model)}`, limits },
    ]),
  )
  return {
    metering: new Metering({
      ...options,
      limiter,
      ledger,
      modelSubjectOf: (model) => byModel.get(keyOf(model)),
    }),
    limits: limiter,
    usage: ledger ?? absentReports,
    close: async () => {
      await ledger?.close()
      await limiter.close()
    },
  }
}

async function openSharedLimiter(database: Database): Promise<ClosableRateLimiter> {
  const { openSqlLimiter } = await import('../../limits/sql.ts')
  return openSqlLimiter(database, { limits: {} })
}

async function openLedgerLazily(
  ...given: Parameters<typeof import('./ledger.ts').openLedger>
): Promise<Ledger> {
  const { openLedger } = await import('./ledger.ts')
  return openLedger(...given)
}

/** `tiny`, `Tiny` and `tiny:latest` are one model. */
const keyOf = (model: string): string => nameKeyOf(model) ?? model

const rejectWithoutDatabase = async (): Promise<never> => {
  throw new TypeError('Nothing is kept of usage: expected the option `database` or `prices` of createLlm')
}
const absentReports: UsageReports = { report: rejectWithoutDatabase, calls: rejectWithoutDatabase }
