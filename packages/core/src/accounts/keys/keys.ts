/**
 * API keys. Each call reads its key from the database, so that a revocation takes effect at once in all
 * processes.
 */
import { randomBytes } from 'node:crypto'
import { invalidRequest, LlmError } from '../../errors.ts'
import { toStorableId } from '../../limits/demand.ts'
import { createAbsentDatabase } from '../../storage/absent-database.ts'
import type { Database, Queries } from '../../storage/database.ts'
import { migrate } from '../../storage/migrations.ts'
import type { Caller, Tiers } from '../auth/caller.ts'
import { checkLimit, unknownEntry } from '../page.ts'
import {
  type KeyRow,
  keyColumns,
  keyNotFound,
  lockKey,
  parseGrant,
  saveKey,
  serializeGrant,
  toSafeId,
} from './key-rows.ts'
import { type KeyStatus, type KeysQuery, toWhere } from './keys-query.ts'
import { LimitRequests } from './limit-requests.ts'
import { RevocationWatcher } from './revocation-watcher.ts'
import * as schema from './schema.ts'
import { createSecret, matchesHash, type NewSecret, parsePublicId } from './secret.ts'
import type { Grant, KeyChanges, KeySettings, Lifetime } from './settings.ts'
import { keyTables } from './tables.ts'

/** An API key, without its secret. */
export interface ApiKey extends Grant {
  /** Id of the key, such as `key_0123456789abcdef01234567`. Usage and limits are counted per id. */
  readonly id: string
  /** Name that describes the user or the purpose of the key. Several keys may have the same. */
  readonly name: string
  /** Tenant of the key: its id, if it has no other one. */
  readonly tenant: string
  /** Beginning and end of the secret. */
  readonly hint: string
  /** Whether the key can be used now. */
  readonly status: KeyStatus
  /** When the key was created. */
  readonly createdAt: Date
  /** When the key stops being valid. Absent if it never expires. */
  readonly expiresAt?: Date
  /** When the key was revoked. Absent if it was not. */
  readonly revokedAt?: Date
  /** Accurate to the minute. */
  readonly lastUsedAt?: Date
  /** Until when a secret from before the last rotation is valid. Absent if none is. */
  readonly previousSecretExpiresAt?: Date
}

/** A key with its secret, which is not stored and cannot be read again. */
export interface KeyWithSecret {
  /** The key, as `get` returns it. */
  readonly key: ApiKey
  /** The secret that the client sends as its API key. */
  readonly secret: string
}

type TiersOf = () => Tiers | undefined

/**
 * @param database if undefined, each method of the returned `Keys` rejects with a `TypeError`
 * @param tiersOf returns the tiers that a key may have. Undefined means any name
 */
export async function openKeys(
  database: Database | undefined,
  tiersOf: TiersOf = () => undefined,
): Promise<Keys> {
  if (database) await migrate(database, 'keys', keyTables)
  return new Keys(database ?? createAbsentDatabase('llm.keys'), tiersOf, database !== undefined)
}

/**
 * The methods reject with an `LlmError`: `invalid_request` for invalid settings, `not_found` for an unknown
 * id.
 */
export class Keys {
  /** Requests for higher limits, which callers make with their keys. */
  readonly requests: LimitRequests
  /** Whether keys can be stored. */
  readonly hasDatabase: boolean
  readonly #database: Database
  readonly #tiersOf: TiersOf
  readonly #revocations: RevocationWatcher
  /** Writes of `last_used_at` in flight, by id of the key. */
  readonly #pendingUses = new Map<string, Promise<unknown>>()

  /** @param hasDatabase false if `database` is a placeholder that rejects each query */
  constructor(database: Database, tiersOf: TiersOf, hasDatabase = true) {
    this.#database = database
    this.hasDatabase = hasDatabase
    this.#tiersOf = tiersOf
    this.requests = new LimitRequests(database, tiersOf)
    this.#revocations = new RevocationWatcher(database)
  }

  /** Creates a key. Its secret is in the result only. Rejects with `invalid_request` for a wrong setting. */
  create(settings: KeySettings): Promise<KeyWithSecret> {
    return this.#inTransaction(async (queries, clock) => {
      const {
        name,
        tenant = null,
        expiresIn,
        expiresAt,
        scopes = ['inference'],
        ...rest
      } = schema.parseSettings(schema.KeySettings, settings)
      this.#checkTier(rest.tier)
      const grant: Grant = { scopes, ...rest }
      const generated = createSecret()
      const now = await readClock(queries, clock)
      const [row] = await queries.query<KeyRow>(
        `INSERT INTO modelmount_keys (id, name, tenant, hint, granted, created_at, expires_at)
         VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING ${keyColumns(clock)}`,
        [
          `key_${randomBytes(12).toString('hex')}`,
          name,
          tenant,
          generated.hint,
          serializeGrant(grant),
          now,
          schema.resolveExpiry({ expiresIn, expiresAt }, now) ?? null,
        ],
      )
      return insertSecret(queries, row as KeyRow, generated)
    })
  }

  /**
   * Lists up to `limit` keys, including revoked keys. The newest key comes first. `after` is the id of the last
   * key of the previous page.
   * Rejects with `not_found` for an unknown `after`.
   */
  async list({ limit, after, search, status }: KeysQuery = {}): Promise<readonly ApiKey[]> {
    const { clock } = this.#database
    const size = checkLimit(limit)
    const last = after === undefined ? undefined : await this.#rowOf(after)
    if (after !== undefined && !last) throw unknownEntry('a key')
    const { where, values } = toWhere({ last, search, status }, clock)
    const rows = await this.#database.query<KeyRow>(
      `SELECT ${keyColumns(clock)} FROM modelmount_keys
       ${where} ORDER BY created_at DESC, id LIMIT ?`,
      [...values, size],
      { isSlow: true },
    )
    return rows.map(toApiKey)
  }

  /** Returns how many keys of each tier are not revoked, in the order of the names. */
  countByTier(tiers: readonly string[]): Promise<readonly number[]> {
    return Promise.all(
      tiers.map(async (tier) => {
        const [row] = await this.#database.query<{ readonly keys: number }>(
          // Not LIKE, which ignores the case of letters in SQLite.
          `SELECT count(*) AS keys FROM modelmount_keys WHERE revoked_at IS NULL AND replace(granted, ?, '') <> granted`,
          [`"tier":${JSON.stringify(tier)}`],
          { isSlow: true },
        )
        return Number(row?.keys)
      }),
    )
  }

  /** Returns the current names of keys, by id. Unknown ids are missing. */
  async namesOf(ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    if (ids.length === 0) return new Map()
    const rows = await this.#database.query<Pick<KeyRow, 'id' | 'name'>>(
      `SELECT id, name FROM modelmount_keys WHERE id IN (${ids.map(() => '?').join(', ')})`,
      ids,
    )
    return new Map(rows.map(({ id, name }) => [id, name]))
  }

  /** Returns one key. Rejects with `not_found` for an unknown id. */
  async get(id: string): Promise<ApiKey> {
    const row = await this.#rowOf(id)
    if (!row) throw keyNotFound()
    return toApiKey(row)
  }

  /**
   * Changes the given settings. A value of `null` removes a setting. Rejects with `conflict` for a revoked
   * key.
   */
  update(id: string, changes: KeyChanges): Promise<ApiKey> {
    return this.#inTransaction(async (queries, clock) => {
      const { name, tenant, expiresIn, expiresAt, ...changed } = schema.parseSettings(
        schema.KeyChanges,
        changes,
      )
      this.#checkTier(changed.tier)
      const row = await lockKey(queries, clock, toSafeId(id))
      const given = Object.entries(changed).filter(([, value]) => value !== undefined)
      const merged = Object.entries({ ...parseGrant(row), ...Object.fromEntries(given) })
      const grant = Object.fromEntries(merged.filter(([, value]) => value !== null)) as unknown as Grant
      const expiry = schema.resolveExpiry({ expiresIn, expiresAt }, row.now)
      const changedRow = {
        id: row.id,
        name: name ?? row.name,
        tenant: tenant === undefined ? row.tenant : tenant,
        expires_at: expiry === undefined ? row.expires_at : expiry,
      }
      return toApiKey(await saveKey(queries, clock, changedRow, grant))
    })
  }

  /**
   * Creates another secret. Each previous secret stays valid for `grace`, unless it expires sooner. Rejects
   * with `conflict` for a revoked key.
   *
   * @param grace @default '24h'
   */
  rotate(id: string, rotation: { readonly grace?: Lifetime | undefined } = {}): Promise<KeyWithSecret> {
    return this.#inTransaction(async (queries, clock) => {
      const { grace = '24h' } = schema.parseSettings(schema.Rotation, rotation)
      const row = await lockKey(queries, clock, toSafeId(id))
      const end = schema.addLifetime(row.now, grace)
      // Expired secrets stay in the table. If the clock is years ahead, secrets that count as expired are valid
      // again as soon as the clock is right.
      await queries.query(
        `UPDATE modelmount_key_secrets SET expires_at = ?
         WHERE key_id = ? AND (expires_at IS NULL OR expires_at > ?)`,
        [end, row.id, end],
      )
      await endSessions(queries, row.id, end)
      const generated = createSecret()
      await queries.query('UPDATE modelmount_keys SET hint = ? WHERE id = ?', [generated.hint, row.id])
      return insertSecret(queries, { ...row, hint: generated.hint, previous_expires_at: end }, generated)
    })
  }

  /**
   * Expires the previous secrets of a rotated key now, and ends the sessions of the key, which may have begun with one
   * of them. Rejects with `conflict` for a revoked key.
   */
  expirePreviousSecrets(id: string): Promise<ApiKey> {
    return this.#inTransaction(async (queries, clock) => {
      const row = await lockKey(queries, clock, toSafeId(id))
      await queries.query(
        'UPDATE modelmount_key_secrets SET expires_at = ? WHERE key_id = ? AND expires_at > ?',
        [row.now, row.id, row.now],
      )
      await endSessions(queries, row.id, row.now)
      return toApiKey({ ...row, previous_expires_at: null })
    })
  }

  /**
   * Revokes a key permanently, from its next call on. Its running answers end within seconds in all
   * processes.
   * Rejects with `not_found` for an unknown id.
   */
  async revoke(id: string): Promise<ApiKey> {
    const { clock } = this.#database
    const [row] = await this.#database.query<KeyRow>(
      `UPDATE modelmount_keys SET revoked_at = COALESCE(revoked_at, ${clock}) WHERE id = ? RETURNING ${keyColumns(clock)}`,
      [toSafeId(id)],
    )
    if (!row) throw keyNotFound()
    this.#revocations.end(row.id)
    return toApiKey(row)
  }

  /** Revokes all keys of a tenant like `revoke`, and returns how many were not revoked yet. */
  async revokeTenant(tenant: string): Promise<number> {
    const id = toStorableId(tenant)
    const rows = await this.#database.query<Pick<KeyRow, 'id'>>(
      `UPDATE modelmount_keys SET revoked_at = ${this.#database.clock}
       WHERE revoked_at IS NULL AND COALESCE(tenant, id) = ? RETURNING id`,
      [id],
    )
    for (const row of rows) this.#revocations.end(row.id)
    return rows.length
  }

  /**
   * Returns the caller whose API key has this secret. Rejects with the same `authentication` error for
   * unknown, revoked and expired keys.
   */
  async authenticate(secret: string): Promise<Caller> {
    const caller = (await this.findCallers([secret])).get(secret)
    if (!caller) throw invalidKey()
    return caller
  }

  /** Returns the caller of a key. Rejects with `authentication` if the key is deleted, revoked or expired. */
  async callerOf(id: string): Promise<Caller> {
    const row = await this.#rowOf(id)
    if (!row || row.revoked_at !== null || (row.expires_at !== null && row.expires_at <= row.now))
      throw invalidKey()
    return toCaller(row)
  }

  /** Returns the callers of the valid API keys among these secrets, by secret, with one query. */
  async findCallers(secrets: readonly string[]): Promise<ReadonlyMap<string, Caller>> {
    const { clock } = this.#database
    const ids = [...new Set(secrets.flatMap((secret) => parsePublicId(secret) ?? []))]
    if (ids.length === 0) return new Map()
    const rows = await this.#database.query<SecretRow>(
      `SELECT k.id, k.name, k.tenant, k.granted, k.last_used_at, s.public_id, s.hash, ${clock} AS now
       FROM modelmount_key_secrets s JOIN modelmount_keys k ON k.id = s.key_id
       WHERE s.public_id IN (${ids.map(() => '?').join(', ')})
         AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > ${clock})
         AND (s.expires_at IS NULL OR s.expires_at > ${clock})`,
      ids,
    )
    const rowsById = new Map(rows.map((row) => [row.public_id, row]))
    const callers = new Map<string, Caller>()
    for (const secret of secrets) {
      const row = rowsById.get(parsePublicId(secret) ?? '')
      if (!row || !matchesHash(secret, row.hash)) continue
      const { last_used_at: lastUsedAt, now } = row
      // A time in the future was written while the clock was ahead.
      if (lastUsedAt === null || lastUsedAt <= now - recordUseEveryMs || lastUsedAt > now)
        this.#recordUse(row)
      callers.set(secret, toCaller(row))
    }
    return callers
  }

  /**
   * Calls the listener within seconds after any process has revoked the key. Does not call it when the key
   * expires.
   *
   * @returns a function that stops watching
   */
  onRevoked(id: string, listener: (error: LlmError) => void): () => void {
    return this.#revocations.watch(id, () => listener(invalidKey()))
  }

  /** Waits for writes in flight. The database stays open. */
  async close(): Promise<void> {
    this.#revocations.close()
    await Promise.all(this.#pendingUses.values())
  }

  async #rowOf(id: string): Promise<KeyRow | undefined> {
    const { clock } = this.#database
    const [row] = await this.#database.query<KeyRow>(
      `SELECT ${keyColumns(clock)} FROM modelmount_keys WHERE id = ?`,
      [toSafeId(id)],
    )
    return row
  }

  /** Rejects an unknown tier, because each call of a key with this tier would fail. */
  #checkTier(tier: string | null | undefined): void {
    const tiers = this.#tiersOf()
    if (!tiers || typeof tier !== 'string' || Object.hasOwn(tiers, tier)) return
    const names = Object.keys(tiers)
    const known = names.length > 0 ? `one of ${names.join(', ')}` : 'no tier: the server has none'
    throw invalidRequest(`tier: Expected ${known}.`, { param: 'tier' })
  }

  /** Writes `last_used_at` in the background. Errors are ignored. */
  #recordUse({ id, now }: KeyRow): void {
    if (this.#pendingUses.has(id)) return
    const recorded = this.#database
      .query(
        'UPDATE modelmount_keys SET last_used_at = ? WHERE id = ? AND (last_used_at IS NULL OR last_used_at <= ? OR last_used_at > ?)',
        [now, id, now - recordUseEveryMs, now],
      )
      .catch(() => {})
      .finally(() => this.#pendingUses.delete(id))
    this.#pendingUses.set(id, recorded)
  }

  #inTransaction<Result>(work: (queries: Queries, clock: string) => Promise<Result>): Promise<Result> {
    return this.#database.transaction((queries) => work(queries, this.#database.clock))
  }
}

const recordUseEveryMs = 60_000

type SecretRow = KeyRow & { readonly public_id: string; readonly hash: string }

/** Ends sessions of a key at this time. A person who knows a previous secret may have one. */
async function endSessions({ query }: Queries, keyId: string, at: number): Promise<void> {
  await query('UPDATE modelmount_sessions SET expires_at = ? WHERE key_id = ? AND expires_at > ?', [
    at,
    keyId,
    at,
  ])
}

async function readClock({ query }: Queries, clock: string): Promise<number> {
  const [row] = await query<{ now: number }>(`SELECT ${clock} AS now`)
  return (row as { now: number }).now
}

async function insertSecret({ query }: Queries, row: KeyRow, generated: NewSecret): Promise<KeyWithSecret> {
  await query('INSERT INTO modelmount_key_secrets (public_id, key_id, hash) VALUES (?, ?, ?)', [
    generated.publicId,
    row.id,
    generated.hash,
  ])
  return { key: toApiKey(row), secret: generated.secret }
}

function toApiKey(row: KeyRow): ApiKey {
  const { expires_at, revoked_at, last_used_at, previous_expires_at: previousEnd, now } = row
  const expired = expires_at !== null && expires_at <= now
  return {
    id: row.id,
    name: row.name,
    tenant: toTenant(row),
    hint: row.hint,
    status: revoked_at !== null ? 'revoked' : expired ? 'expired' : 'active',
    ...parseGrant(row),
    createdAt: new Date(row.created_at),
    ...(expires_at !== null && { expiresAt: new Date(expires_at) }),
    ...(revoked_at !== null && { revokedAt: new Date(revoked_at) }),
    ...(last_used_at !== null && { lastUsedAt: new Date(last_used_at) }),
    ...(previousEnd !== null &&
      previousEnd > now &&
      revoked_at === null && { previousSecretExpiresAt: new Date(previousEnd) }),
  }
}

/** The id of the caller is the id of the key, since limits and spending are per key. */
function toCaller(row: KeyRow): Caller {
  const { id, name } = row
  return { id, tenant: toTenant(row), ...parseGrant(row), key: { id, name } }
}

const toTenant = ({ id, tenant }: Pick<KeyRow, 'id' | 'tenant'>): string => tenant ?? id

export const invalidKey = (): LlmError =>
  new LlmError('authentication', 'Invalid API key: it is unknown, revoked or expired.')
