/**
 * Charges what killed processes have handed out. A process that runs a call renews the lease of the call, with a
 * note of the tokens that the reader has got. An expired lease is therefore that of a process that was killed, that
 * hangs, or that cannot reach the database. If such a process settles the call after all, its row replaces the row
 * from the note.
 */
import { LlmError } from '../../errors.ts'
import type { Database, Queries } from '../../storage/database.ts'
import { leaseMs, longestLeaseMs } from '../../storage/leases.ts'
import type { Caller } from '../auth/caller.ts'
import type { NanoUsdLimit } from '../spending-limit.ts'
import { type NewCall, takeBackCall, writeCall } from './call-rows.ts'
import type { CreditLeases } from './credit-leases.ts'
import { addSpending, lockAccount, noteExhausted, spentIn } from './spending.ts'
import { type SpendingWarning, toWarning } from './warnings.ts'

/** The row of a call, without what only the database knows. */
export interface CallNote extends Omit<NewCall, 'id' | 'at' | 'caller' | 'tenant' | 'status'> {
  /** The spending limit of the caller. */
  readonly limit?: NanoUsdLimit | undefined
}

interface ExpiredLease {
  readonly id: string
  readonly tenant: string | null
  readonly at: number
  readonly note: string | null
  readonly expires_at: number
}

/**
 * Ends up to 200 expired leases of a caller, and charges their notes. The current transaction must have locked the
 * caller's account.
 */
export async function chargeKilledCalls(
  queries: Queries,
  id: string,
  { now, leases }: { readonly now: number; readonly leases: CreditLeases },
): Promise<readonly RecordedCall[]> {
  await leases.restore(queries, id, now)
  const expired = await queries.query<ExpiredLease>(
    `DELETE FROM modelmount_funds WHERE id IN
       (SELECT id FROM modelmount_funds WHERE caller = ? AND expires_at <= ? LIMIT ${callsAtOnce})
     RETURNING id, tenant, at, note, expires_at`,
    [id, now],
  )
  const recorded: RecordedCall[] = []
  for (const lease of expired) {
    if (lease.note === null) continue
    const { limit, ...note } = JSON.parse(lease.note) as CallNote
    // The last renewal is the time of the note.
    const at = Math.min(lease.at || lease.expires_at - leaseMs - note.durationMs, now)
    const call = {
      ...note,
      id: lease.id,
      at,
      caller: id,
      tenant: lease.tenant ?? id,
      status: 'killed',
    } as const
    const caller = { id, ...(note.keyName !== null && { key: { id, name: note.keyName } }) }
    recorded.push(...(await recordCall(queries, call, { caller, limit })))
  }
  return recorded
}

export interface KilledCallsParts {
  /** SQL expression of the current time in milliseconds. */
  readonly clock: string
  readonly leases: CreditLeases
  /** Called after each commit. */
  onRecorded(recorded: readonly RecordedCall[]): void
  /** Called for each caller that cannot be charged. */
  onError(cause: unknown): void
}

/** Charges the killed calls of all callers, each in a transaction. Rejects if the database is unavailable. */
export async function chargeAllKilledCalls(
  database: Database,
  { clock, leases, onRecorded, onError }: KilledCallsParts,
): Promise<void> {
  const callers = await database.query<{ caller: string }>(
    `SELECT DISTINCT caller FROM modelmount_funds
     WHERE expires_at <= ${clock} OR expires_at > ${clock} + ${longestLeaseMs} LIMIT ${callersAtOnce}`,
  )
  for (const { caller } of callers)
    try {
      const recorded = await database.transaction(async (queries) => {
        const { now } = await lockAccount(queries, { id: caller }, clock)
        await leases.shorten(queries, caller, now)
        return chargeKilledCalls(queries, caller, { now, leases })
      })
      onRecorded(recorded)
    } catch (cause) {
      if (LlmError.is(cause) && cause.code === 'unavailable') throw cause
      onError(cause)
    }
}

const callersAtOnce = 1_000
/** Bounds the time of one transaction. The next one charges the rest. */
const callsAtOnce = 200

/** A call whose row has been written. */
export interface RecordedCall {
  /** Start of the call. */
  readonly at: number
  /** What the row has added to the spending. */
  readonly nanoUsd: number
  /** Undefined without a spending limit, or if the call belongs to a past period. */
  readonly warning?: Omit<SpendingWarning, 'threshold'>
  /** Whether this is the first call of the period that reaches the limit. */
  readonly isExhausted?: boolean
}

/**
 * Writes the row of a call and adds its cost to the caller's spending. Replaces a row from a note. The current
 * transaction must have locked the caller's account.
 *
 * @returns nothing if the row was written before
 */
export async function recordCall(
  queries: Queries,
  call: NewCall,
  payer: { readonly caller: Pick<Caller, 'id' | 'key'>; readonly limit: NanoUsdLimit | undefined },
): Promise<readonly RecordedCall[]> {
  const { caller, limit } = payer
  const { at } = call
  let { nanoUsd } = call
  if (!(await writeCall(queries, call))) {
    const chargedNanoUsd = await takeBackCall(queries, call.id)
    if (chargedNanoUsd === undefined) return []
    await writeCall(queries, call)
    nanoUsd -= chargedNanoUsd
  }
  const spending = await addSpending(queries, caller, at, nanoUsd)
  const spent = limit && nanoUsd > 0 ? spentIn(spending, limit.period, at) : undefined
  if (!limit || spent === undefined) return [{ at, nanoUsd }]
  const isSpent = spent >= BigInt(limit.nanoUsd)
  const isExhausted = isSpent && (await noteExhausted(queries, caller, limit, at))
  return [{ at, nanoUsd, warning: toWarning(caller, limit, Number(spent)), isExhausted }]
}
