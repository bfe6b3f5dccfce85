/**
 * Stores requests for higher limits, and the decisions about them. Callers make these requests with their API
 * keys.
 */
import { randomBytes } from 'node:crypto'
import { invalidRequest, LlmError } from '../../errors.ts'
import { toStorableId } from '../../limits/demand.ts'
import type { InferenceLimits } from '../../limits/limits.ts'
import type { Database, Queries } from '../../storage/database.ts'
import type { Caller, Tiers } from '../auth/caller.ts'
import { checkLimit, type PageQuery, unknownEntry } from '../page.ts'
import { type NanoUsdLimit, type SpendingLimit, toNanoUsdLimit, toSpendingLimit } from '../spending-limit.ts'
import { lockKey, parseGrant, saveKey, toSafeId } from './key-rows.ts'
import { currentLimitsOf, expectIncrease, type LimitIncrease, raiseLimits } from './limit-increase.ts'
import * as schema from './schema.ts'
import type { LimitRequestInput } from './settings.ts'

/** A request for higher limits of a key. */
export interface LimitRequest {
  /** Id for `get`, `approve` and `refuse`. */
  readonly id: string
  /** Id of the key whose limits are to change. */
  readonly keyId: string
  /** Current name of the key. */
  readonly keyName: string
  /** Requested limits. The other limits of the key do not change. */
  readonly limits: InferenceLimits
  /** Requested spending limit. Absent if that of the key does not change. */
  readonly spendingLimit?: SpendingLimit
  /** Written by the requester. */
  readonly reason: string
  /** `pending` until it is approved or refused. An approved request has changed the limits of the key. */
  readonly status: 'pending' | 'approved' | 'refused'
  /** When the request was made. */
  readonly createdAt: Date
  /** When the request was approved or refused. Absent while it is pending. */
  readonly decidedAt?: Date
  /** Written by the person who has decided. */
  readonly note?: string
  /** Id of the caller who has decided. Absent for the host app itself. */
  readonly decidedBy?: string
}

export interface Decision {
  /** Up to 2,000 characters, for the owner of the key. @default none */
  readonly note?: string | undefined
  /** Id of the caller who decides. @default the host app itself */
  readonly decidedBy?: string | undefined
}

export class LimitRequests {
  readonly #database: Database
  readonly #tiersOf: () => Tiers | undefined

  /** @param tiersOf returns the option `tiers`. Limits of a tier that it does not contain are not compared */
  constructor(database: Database, tiersOf: () => Tiers | undefined) {
    this.#database = database
    this.#tiersOf = tiersOf
  }

  /**
   * Rejects with an `LlmError`: `invalid_request` for a limit that is lower than the present one, `conflict` while
   * another request of the key is pending, `permission` for callers without a key.
   */
  async create({ key }: Pick<Caller, 'key'>, input: LimitRequestInput): Promise<LimitRequest> {
    const { limits = {}, spendingLimit, reason = '' } = schema.parseSettings(schema.LimitRequestInput, input)
    if (!key) throw new LlmError('permission', 'Limit requests require an API key. Call this route with one.')
    const increase: LimitIncrease = { limits, spendingLimit }
    if (!spendingLimit && Object.values(limits).every((limit) => limit === undefined))
      throw invalidRequest('limits: Expected at least one limit, or `spendingLimit`.', { param: 'limits' })
    const { clock } = this.#database
    const [row] = await this.#database.transaction(async (queries) => {
      // The key may have been revoked and deleted since it was authenticated.
      const row = await lockKey(queries, clock, toSafeId(key.id))
      expectIncrease(increase, currentLimitsOf(parseGrant(row), this.#tiersOf()))
      return queries.query<LimitRequestRow>(
        `INSERT INTO modelmount_limit_requests (id, key_id, limits, reason, status, created_at)
         VALUES (?, ?, ?, ?, 'pending', ${clock})
         ON CONFLICT DO NOTHING RETURNING ${columns}`,
        [`limreq_${randomBytes(12).toString('hex')}`, row.id, serializeIncrease(increase), reason],
      )
    })
    if (!row) throw new LlmError('conflict', 'Another limit request of this key is pending.')
    return toRequest(row)
  }

  /**
   * Returns up to `limit` requests, the oldest first. `after` is the id of the last request of the previous
   * page.
   */
  async list({ status, keyId, limit, after }: LimitRequestsQuery = {}): Promise<readonly LimitRequest[]> {
    const size = checkLimit(limit)
    const last = after === undefined ? undefined : await this.#rowOf(this.#database, after)
    if (after !== undefined && !last) throw unknownEntry('a limit request')
    const conditions = [
      ...(status ? ['status = ?'] : []),
      ...(keyId === undefined ? [] : ['key_id = ?']),
      ...(last ? ['created_at >= ? AND (created_at > ? OR id > ?)'] : []),
    ]
    const rows = await this.#database.query<LimitRequestRow>(
      `SELECT ${columns} FROM modelmount_limit_requests
       ${conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : ''} ORDER BY created_at, id LIMIT ?`,
      [
        ...(status ? [status] : []),
        ...(keyId === undefined ? [] : [toSafeId(keyId)]),
        ...(last ? [last.created_at, last.created_at, last.id] : []),
        size,
      ],
      { isSlow: true },
    )
    return rows.map(toRequest)
  }

  /** Rejects with `not_found` for an unknown id. */
  async get(id: string): Promise<LimitRequest> {
    const row = await this.#rowOf(this.#database, id)
    if (!row) throw requestNotFound()
    return toRequest(row)
  }

  /**
   * Sets the requested limits, which apply from the key's next call on. A limit that is higher by now stays. Rejects with
   * `not_found` for an unknown id, and with `conflict` for a decided request or a revoked key.
   */
  approve(id: string, decision: Decision = {}): Promise<LimitRequest> {
    const { clock } = this.#database
    return this.#database.transaction(async (queries) => {
      const request = await this.#decide(queries, id, 'approved', decision)
      const row = await lockKey(queries, clock, request.keyId)
      await saveKey(queries, clock, row, raiseLimits(parseGrant(row), request, this.#tiersOf()))
      return request
    })
  }

  /** Rejects with `not_found` for an unknown id, and with `conflict` for a decided request. */
  refuse(id: string, decision: Decision = {}): Promise<LimitRequest> {
    return this.#database.transaction((queries) => this.#decide(queries, id, 'refused', decision))
  }

  async #decide(
    queries: Queries,
    id: string,
    status: 'approved' | 'refused',
    { note, decidedBy }: Decision,
  ): Promise<LimitRequest> {
    const given = schema.parseSettings(schema.DecisionInput, { note })
    const [row] = await queries.query<LimitRequestRow>(
      `UPDATE modelmount_limit_requests
       SET status = ?, note = ?, decided_by = ?, decided_at = ${this.#database.clock}
       WHERE id = ? AND status = 'pending' RETURNING ${columns}`,
      [status, given.note || null, decidedBy === undefined ? null : toStorableId(decidedBy), toSafeId(id)],
    )
    if (row) return toRequest(row)
    const decided = await this.#rowOf(queries, id)
    throw decided
      ? new LlmError('conflict', `This limit request is already ${decided.status}.`)
      : requestNotFound()
  }

  async #rowOf(queries: Queries, id: string): Promise<LimitRequestRow | undefined> {
    const [row] = await queries.query<LimitRequestRow>(
      `SELECT ${columns} FROM modelmount_limit_requests WHERE id = ?`,
      [toSafeId(id)],
    )
    return row
  }
}

interface LimitRequestsQuery extends PageQuery {
  /** @default any status */
  readonly status?: LimitRequest['status'] | undefined
  /** @default the requests of all keys */
  readonly keyId?: string | undefined
}

const columns = `id, key_id, limits, reason, status, created_at, decided_at, note, decided_by,
  (SELECT name FROM modelmount_keys WHERE modelmount_keys.id = key_id) AS key_name`

interface LimitRequestRow {
  readonly id: string
  readonly key_id: string
  /** A `StoredIncrease` as JSON. */
  readonly limits: string
  readonly reason: string
  readonly status: LimitRequest['status']
  readonly created_at: number
  readonly decided_at: number | null
  readonly note: string | null
  readonly decided_by: string | null
  /** The row of a key is deleted with its requests. */
  readonly key_name: string
}

/** The requested limits, and the spending limit beside them. */
type StoredIncrease = InferenceLimits & { readonly spendingLimit?: NanoUsdLimit }

const serializeIncrease = ({ limits, spendingLimit }: LimitIncrease): string =>
  JSON.stringify({
    ...limits,
    ...(spendingLimit && { spendingLimit: toNanoUsdLimit(spendingLimit) }),
  } satisfies StoredIncrease)

function parseIncrease(json: string): Pick<LimitRequest, 'limits' | 'spendingLimit'> {
  const { spendingLimit, ...limits } = JSON.parse(json) as StoredIncrease
  return { limits, ...(spendingLimit && { spendingLimit: toSpendingLimit(spendingLimit) }) }
}

const requestNotFound = (): LlmError => new LlmError('not_found', 'Limit request not found.')

const toRequest = (row: LimitRequestRow): LimitRequest => ({
  id: row.id,
  keyId: row.key_id,
  keyName: row.key_name,
  ...parseIncrease(row.limits),
  reason: row.reason,
  status: row.status,
  createdAt: new Date(row.created_at),
  ...(row.decided_at !== null && { decidedAt: new Date(row.decided_at) }),
  ...(row.note !== null && { note: row.note }),
  ...(row.decided_by !== null && { decidedBy: row.decided_by }),
})
