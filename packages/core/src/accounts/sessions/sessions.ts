/** Sessions of browsers, which have logged in with an API key or with a one-time link. */
import { createHash, randomBytes } from 'node:crypto'
import { LlmError } from '../../errors.ts'
import type { Database } from '../../storage/database.ts'
import { allScopes, type Caller } from '../auth/caller.ts'
import { parsePublicId } from '../keys/secret.ts'

/** How long a session lasts, in ms. It is not extended. */
const sessionMs = 12 * 3_600_000

/** Sessions in memory. The oldest one beyond this number is forgotten. */
const maxSessions = 1_000

export interface NewSession {
  /** Identifies the session. Only its hash is stored. */
  readonly secret: string
  readonly lifetimeMs: number
}

/** The key with which a browser logs in. */
export interface SessionKey {
  readonly id: string
  /** The session ends with this secret, which a rotation may have replaced. */
  readonly secret: string
}

/** A session of the person who operates the app, who forwards no calls of another app. */
const operator: Caller = { id: 'console', scopes: allScopes.filter((scope) => scope !== 'fleet') }

interface SessionStore {
  /** @param key undefined for the session of an operator */
  add(hash: string, key: SessionKey | undefined): Promise<void>
  /** Returns undefined for an unknown or expired session. */
  find(hash: string): Promise<{ readonly keyId: string | undefined } | undefined>
  delete(hash: string): Promise<void>
}

export class Sessions {
  readonly #store: SessionStore
  readonly #callerOf: (keyId: string) => Promise<Caller>

  /**
   * @param database without it, sessions are in memory
   * @param callerOf returns the caller of a key. Rejects with `authentication` if the key is not valid any more
   */
  constructor(database: Database | undefined, callerOf: (keyId: string) => Promise<Caller>) {
    this.#store = database ? new DatabaseSessions(database) : new MemorySessions()
    this.#callerOf = callerOf
  }

  /** @param key undefined for an operator, who has all scopes */
  async create(key?: SessionKey): Promise<NewSession> {
    const secret = randomBytes(32).toString('base64url')
    await this.#store.add(hashOf(secret), key)
    return { secret, lifetimeMs: sessionMs }
  }

  /** Returns the caller with the current settings of its key. Rejects with `authentication` if the session is over. */
  async callerOf(secret: string): Promise<Caller> {
    const session = await this.#store.find(hashOf(secret))
    if (!session) throw invalidSession()
    if (session.keyId === undefined) return operator
    return this.#callerOf(session.keyId).catch((error: unknown) => {
      throw error instanceof LlmError && error.code === 'authentication' ? invalidKey() : error
    })
  }

  /** Does nothing if the session is over. */
  end(secret: string): Promise<void> {
    return this.#store.delete(hashOf(secret))
  }
}

class DatabaseSessions implements SessionStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async add(hash: string, key: SessionKey | undefined): Promise<void> {
    const { clock } = this.#database
    await this.#database.transaction(async ({ query }) => {
      await query(`DELETE FROM modelmount_sessions WHERE expires_at <= ${clock}`)
      await query(
        `INSERT INTO modelmount_sessions (hash, key_id, expires_at) VALUES (?, ?, COALESCE(
           (SELECT expires_at FROM modelmount_key_secrets
            WHERE public_id = ? AND expires_at < ${clock} + ${sessionMs}),
           ${clock} + ${sessionMs}))`,
        [hash, key?.id ?? null, parsePublicId(key?.secret ?? '') ?? ''],
      )
    })
  }

  async find(hash: string): Promise<{ readonly keyId: string | undefined } | undefined> {
    const [row] = await this.#database.query<{ readonly key_id: string | null }>(
      `SELECT key_id FROM modelmount_sessions WHERE hash = ? AND expires_at > ${this.#database.clock}`,
      [hash],
    )
    return row && { keyId: row.key_id ?? undefined }
  }

  async delete(hash: string): Promise<void> {
    await this.#database.query('DELETE FROM modelmount_sessions WHERE hash = ?', [hash])
  }
}

class MemorySessions implements SessionStore {
  readonly #sessions = new Map<string, { readonly keyId: string | undefined; readonly endsAt: number }>()

  async add(hash: string, key: SessionKey | undefined): Promise<void> {
    const [oldest = ''] = this.#sessions.keys()
    if (this.#sessions.size >= maxSessions) this.#sessions.delete(oldest)
    this.#sessions.set(hash, { keyId: key?.id, endsAt: performance.now() + sessionMs })
  }

  async find(hash: string): Promise<{ readonly keyId: string | undefined } | undefined> {
    const session = this.#sessions.get(hash)
    return session && performance.now() < session.endsAt ? session : undefined
  }

  async delete(hash: string): Promise<void> {
    this.#sessions.delete(hash)
  }
}

/** The secret is random, so that a fast hash is enough. */
const hashOf = (secret: string): string => createHash('sha256').update(secret).digest('hex')

const invalidSession = (): LlmError => new LlmError('authentication', 'Your session has ended. Log in again.')

/** The caller knows the key already, so that this text may say more than those for unknown keys. */
const invalidKey = (): LlmError =>
  new LlmError(
    'authentication',
    'Your session has ended, because its API key was revoked or has expired. Log in with another key.',
  )
