/** What is metered, put together: in memory where there is no database; where there is one, shared by all who name it. */
import type { Limits, OpenRateLimiter, RateLimiter } from '../../limits/limits.ts'
import { MemoryLimiter } from '../../limits/memory.ts'
import { keyOf as nameKeyOf } from '../../models/ollama-store/name.ts'
import type { Database } from '../../storage/database.ts'
import type { Ledger, LedgerOptions } from './ledger.ts'
import { Metering, type MeteringOptions } from './metering.ts'
import type { Prices } from './pricing.ts'
import type { SpendWarningOptions } from './warnings.ts'

export type UsageReports = Pick<Ledger, 'report' | 'calls'>

export interface UsageOptions extends Pick<MeteringOptions, 'tiers' | 'queue' | 'onError'> {
  readonly prices: Prices
  readonly modelLimits: Readonly<Record<string, Limits>>
  readonly warnings: SpendWarningOptions
  readonly keepMs: number
  readonly namesOf: LedgerOptions['namesOf']
}

export interface Metered {
  readonly metering: Metering
  readonly limits: RateLimiter
  readonly usage: UsageReports
  /** What could not be written is tried once more. The database stays open. */
  close(): Promise<void>
}

export async function openMetering(
  database: Database | undefined,
  { prices, modelLimits, warnings, keepMs, namesOf, ...options }: UsageOptions,
): Promise<Metered> {
  const { onError } = options
  const limiter = database ? await sharedLimiter(database) : new MemoryLimiter({})
  const ledger =
    database && (await openedLedger(database, { prices, keyOf, warnings, keepMs, namesOf, onError }))
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
      subjectOf: (model) => byModel.get(keyOf(model)),
    }),
    limits: limiter,
    usage: ledger ?? withoutDatabase,
    close: async () => {
      await ledger?.close()
      await limiter.close()
    },
  }
}

async function sharedLimiter(database: Database): Promise<OpenRateLimiter> {
  const { openSqlLimiter } = await import('../../limits/sql.ts')
  return openSqlLimiter(database, { limits: {} })
}

async function openedLedger(...given: Parameters<typeof import('./ledger.ts').openLedger>): Promise<Ledger> {
  const { openLedger } = await import('./ledger.ts')
  return openLedger(...given)
}

/** `tiny`, `Tiny` and `tiny:latest` are one model. */
const keyOf = (model: string): string => nameKeyOf(model) ?? model

const refuse = async (): Promise<never> => {
  throw new TypeError('Nothing is kept of usage: expected the option `database` or `prices` of createLlm')
}
const withoutDatabase: UsageReports = { report: refuse, calls: refuse }
