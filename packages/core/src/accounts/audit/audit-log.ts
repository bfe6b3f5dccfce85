/**
 * The audit log: who has changed what through the admin API and the command line. An entry is written before its
 * change, so that a crash in between still shows who tried.
 */
import { randomBytes } from 'node:crypto'
import { invalidRequest, LlmError, type LlmErrorCode } from '../../errors.ts'
import { type Database, type SqlValue, UncertainOutcome } from '../../storage/database.ts'
import { migrate } from '../../storage/migrations.ts'
import { type Caller, tenantOf } from '../auth/caller.ts'
import { parseCaller } from '../auth/parse-caller.ts'
import { toSafeId } from '../keys/key-rows.ts'
import { checkLimit, type PageQuery, unknownEntry } from '../page.ts'
import { toAuditedId, toAuditedName, toStorableChanges } from './changes.ts'
import { auditTables } from './tables.ts'

export interface AuditEntry {
  readonly id: string
  readonly at: Date
  /** Id of the caller, or `command line`. */
  readonly caller: string
  /** The API key of the caller, with the name that it had then. */
  readonly key?: { readonly id: string; readonly name: string }
  /** The `operationId` of the route in the admin API, such as `revokeKey`. */
  readonly action: string
  /** Id of what was changed, such as a key. Absent if the creation of an entry failed. */
  readonly target?: string
  /** Current name of the target, if it is a key, or of the key of a limit request. */
  readonly targetName?: string
  /** The tenant whose data was changed, if it is known. */
  readonly tenant?: string
  /** The requested settings, and `before` with those that they replace. Never contains a secret. */
  readonly changes: Readonly<Record<string, unknown>>
  /** `unknown` while the change runs, if the process was killed meanwhile, and if the database did not confirm it. */
  readonly outcome: 'success' | 'failure' | 'unknown'
  /** Why the change failed. */
  readonly error?: LlmErrorCode
}

/** A change that is about to be made. */
export interface AuditedChange<Result = unknown> {
  /** Who makes the change, such as `{ id: 'ada' }`. It is checked like the caller of a call. */
  readonly caller: Pick<Caller, 'id' | 'tenant' | 'key'>
  readonly action: string
  /** @default from `describe` */
  readonly target?: string | undefined
  /** @default the tenant of the key or limit request with the id `target`, or from `describe` */
  readonly tenant?: string | undefined
  readonly changes?: object | undefined
  /** Names what was changed, from the result of the change. */
  describe?(result: Result): Partial<Record<'target' | 'tenant', string | undefined>>
  /** Whether an entry remains if the change fails. @default true */
  readonly keepsFailures?: boolean | undefined
}

export interface AuditQuery extends PageQuery {
  /** Id of the caller, or the current name of its key in any case. */
  readonly caller?: string | undefined
  readonly action?: string | undefined
  /** Id of the target, or the current name of a key in any case: then also its limit requests. */
  readonly target?: string | undefined
  /** The earliest time. */
  readonly from?: Date | undefined
  /** The time before which the changes began. */
  readonly to?: Date | undefined
}

/** @param onError called when the outcome of a change cannot be written */
export async function openLog(database: Database, onError: (cause: unknown) => void): Promise<AuditLog> {
  await migrate(database, 'audit', auditTables)
  return new AuditLog(database, onError)
}

export class AuditLog {
  readonly #database: Database
  readonly #onError: (cause: unknown) => void

  constructor(database: Database, onError: (cause: unknown) => void) {
    this.#database = database
    this.#onError = onError
  }

  /**
   * Makes a change and records it. Returns the result of `make`, and rejects with its error. If the entry cannot be
   * written, rejects with an `LlmError` `unavailable` without a call of `make`. Without a database, only calls `make`.
   */
  async record<Result>(change: AuditedChange<Result>, make: () => Promise<Result>): Promise<Result> {
    const id = await insert(this.#database, change)
    try {
      const result = await make()
      await this.#finish(id, { outcome: 'success', ...change.describe?.(result) })
      return result
    } catch (cause) {
      const { code: error } = LlmError.from(cause)
      const isUncertain = cause instanceof UncertainOutcome
      await (change.keepsFailures === false && !isUncertain
        ? this.#try('DELETE FROM modelmount_audit WHERE id = ?', [id])
        : this.#finish(id, { outcome: isUncertain ? 'unknown' : 'failure', error }))
      throw cause
    }
  }

  /**
   * Lists up to `limit` entries, the newest first. `after` is the id of the last entry of the previous page. Without a
   * database, rejects with a `TypeError`.
   */
  async list({ limit, after, ...filters }: AuditQuery = {}): Promise<readonly AuditEntry[]> {
    const database = this.#database
    const size = checkLimit(limit)
    const { caller, target } = filters
    const [callers, targets] = [await findIds(database, caller), await findIds(database, target)]
    const conditions = toConditions({ ...filters, callers, targets })
    if (after !== undefined) {
      const [last] = await database.query<Pick<AuditRow, 'id' | 'at'>>(
        'SELECT id, at FROM modelmount_audit WHERE id = ?',
        [toSafeId(after)],
      )
      if (!last) throw unknownEntry('an entry')
      conditions.push({ sql: '(at, id) < (?, ?)', values: [last.at, last.id] })
    }
    const rows = await database.query<AuditRow>(
      `SELECT ${columns} FROM modelmount_audit
       ${conditions.length > 0 ? `WHERE ${conditions.map(({ sql }) => sql).join(' AND ')}` : ''}
       ORDER BY at DESC, id DESC LIMIT ?`,
      [...conditions.flatMap(({ values }) => values), size],
      { isSlow: true },
    )
    const names = await namesOf(
      database,
      rows.flatMap(({ target }) => target ?? []),
    )
    return rows.map((row) => toEntry(row, names.get(row.target ?? '')))
  }

  /** Never rejects: the change has been made, whether or not the log can say so. */
  async #finish(
    id: string,
    { outcome, error, target, tenant }: Pick<AuditEntry, 'outcome' | 'error'> & ChangedEntry,
  ): Promise<void> {
    // A deletion of the tenant may have erased the entry meanwhile.
    await this.#try(
      `UPDATE modelmount_audit SET outcome = ?, error = ?, target = COALESCE(target, ?),
         tenant = CASE WHEN tenant = '${erased}' THEN tenant ELSE COALESCE(?, tenant) END WHERE id = ?`,
      [outcome, error ?? null, toStorable(target), toStorable(tenant), id],
    )
  }

  async #try(sql: string, values: readonly SqlValue[]): Promise<void> {
    await this.#database.query(sql, values).catch(this.#onError)
  }
}

/** Replaces what an entry says about a deleted tenant. */
export const erased = '(deleted)'

type ChangedEntry = Partial<Record<'target' | 'tenant', string | undefined>>

async function insert(database: Database, change: AuditedChange): Promise<string> {
  const { action, target, tenant, changes = {} } = change
  const caller = parseCaller(change.caller)
  const id = `audit_${randomBytes(12).toString('hex')}`
  const values: Readonly<Record<string, SqlValue>> = {
    id,
    caller: toAuditedId(caller.id),
    caller_tenant: toAuditedId(tenantOf(caller)),
    key_id: toStorable(caller.key?.id),
    key_name: caller.key ? toAuditedName(caller.key.name) : null,
    action: toAuditedId(action),
    target: toStorable(target),
    changes: toStorableChanges(changes),
    outcome: 'unknown',
  }
  const names = Object.keys(values)
  const safeTarget = toSafeId(target ?? '')
  await database.query(
    `INSERT INTO modelmount_audit (${names.join(', ')}, at, tenant)
     VALUES (${names.map(() => '?').join(', ')}, ${database.clock}, COALESCE(?,
       (SELECT COALESCE(tenant, id) FROM modelmount_keys WHERE id = ?),
       (SELECT COALESCE(k.tenant, k.id) FROM modelmount_limit_requests r
        JOIN modelmount_keys k ON k.id = r.key_id WHERE r.id = ?)))`,
    [...Object.values(values), toStorable(tenant), safeTarget, safeTarget],
  )
  return id
}

const toStorable = (id: string | undefined): string | null => (id === undefined ? null : toAuditedId(id))

interface AuditCondition {
  readonly sql: string
  readonly values: readonly SqlValue[]
}

interface AuditConditions extends Pick<AuditQuery, 'action' | 'from' | 'to'> {
  readonly callers: readonly string[] | undefined
  readonly targets: readonly string[] | undefined
}

function toConditions({ callers, action, targets, from, to }: AuditConditions): AuditCondition[] {
  const isOneOf = (column: string, values: readonly string[] | undefined): AuditCondition[] =>
    values === undefined
      ? []
      : [{ sql: values.length === 1 ? `${column} = ?` : `${column} IN (${toMarks(values)})`, values }]
  const compare = (name: 'from' | 'to', sql: string, date: Date | undefined): AuditCondition[] =>
    date === undefined ? [] : [{ sql, values: [toTime(name, date)] }]
  return [
    ...isOneOf('caller', callers),
    ...isOneOf('action', action === undefined ? undefined : [toAuditedId(action)]),
    ...isOneOf('target', targets),
    ...compare('from', 'at >= ?', from),
    ...compare('to', 'at < ?', to),
  ]
}

/** Returns an id, and the ids of keys with this name and of their limit requests, at most 100. */
async function findIds(database: Database, text: string | undefined): Promise<readonly string[] | undefined> {
  if (text === undefined) return undefined
  const rows = await database.query<{ readonly id: string }>(
    `SELECT k.id FROM modelmount_keys k WHERE lower(k.name) = lower(?)
     UNION ALL SELECT r.id FROM modelmount_limit_requests r JOIN modelmount_keys k ON k.id = r.key_id
       WHERE lower(k.name) = lower(?)
     LIMIT 100`,
    [toAuditedName(text), toAuditedName(text)],
    { isSlow: true },
  )
  return [toAuditedId(text), ...rows.map(({ id }) => id)]
}

/** Returns the current names of keys, and those of the keys of limit requests, by id. */
async function namesOf(database: Database, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const known = [...new Set(ids)].filter((id) => toSafeId(id) !== '')
  if (known.length === 0) return new Map()
  const rows = await database.query<Record<'id' | 'name', string>>(
    `SELECT id, name FROM modelmount_keys WHERE id IN (${toMarks(known)})
     UNION ALL SELECT r.id, k.name FROM modelmount_limit_requests r JOIN modelmount_keys k ON k.id = r.key_id
       WHERE r.id IN (${toMarks(known)})`,
    [...known, ...known],
  )
  return new Map(rows.map(({ id, name }) => [id, name]))
}

const toMarks = (values: readonly unknown[]): string => values.map(() => '?').join(', ')

function toTime(param: 'from' | 'to', date: Date): number {
  const time = date.getTime()
  if (Number.isNaN(time)) throw invalidRequest(`${param}: Expected a valid date.`, { param })
  return time
}

const columns = 'id, at, caller, key_id, key_name, action, target, tenant, changes, outcome, error'

interface AuditRow {
  readonly id: string
  readonly at: number
  readonly caller: string
  readonly key_id: string | null
  readonly key_name: string | null
  readonly action: string
  readonly target: string | null
  readonly tenant: string | null
  readonly changes: string
  readonly outcome: AuditEntry['outcome']
  readonly error: LlmErrorCode | null
}

const toEntry = (
  { key_id, key_name, target, tenant, error, ...row }: AuditRow,
  targetName: string | undefined,
): AuditEntry => ({
  id: row.id,
  at: new Date(row.at),
  caller: row.caller,
  ...(key_id !== null && { key: { id: key_id, name: key_name ?? '' } }),
  action: row.action,
  ...(target !== null && { target }),
  ...(targetName !== undefined && { targetName }),
  ...(tenant !== null && { tenant }),
  changes: JSON.parse(row.changes) as Record<string, unknown>,
  outcome: row.outcome,
  ...(error !== null && { error }),
})
