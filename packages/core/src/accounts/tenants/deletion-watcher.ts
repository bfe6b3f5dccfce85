/** Watches the log for deletions by other apps, because this app may run calls or keep prompts of their tenants. */
import type { Database } from '../../storage/database.ts'
import { migrate } from '../../storage/migrations.ts'
import { DeletionLog, type LoggedDeletion } from './deletion-log.ts'
import { tenantTables } from './tables.ts'
import type { DataDeletion } from './tenant-data.ts'

/**
 * Called for each deletion by another app, and again for a minute after the end of any deletion.
 *
 * @param isNew whether this app has not handled the deletion yet
 */
export type DeletionListener = (deletion: LoggedDeletion, isNew: boolean) => Promise<void>

/** @param onError called when work in the background fails, which is tried again */
export async function openDeletionWatcher(
  database: Database,
  onError: (cause: unknown) => void,
): Promise<DeletionWatcher> {
  await migrate(database, 'tenants', tenantTables)
  const log = new DeletionLog(database)
  return new DeletionWatcher(log, await log.read(), onError)
}

export class DeletionWatcher {
  readonly #log: DeletionLog
  readonly #onError: (cause: unknown) => void
  #listener: DeletionListener | undefined
  /** Times of the deletions that this app has handled, by tenant. */
  readonly #handled = new Map<string, number>()
  /** Tenants whose deletion this app handles now. */
  readonly #inProgress = new Set<string>()
  readonly #looks = new Set<Promise<void>>()
  #timer: NodeJS.Timeout | undefined

  /** @param before deletions before the first call of this app */
  constructor(log: DeletionLog, before: readonly LoggedDeletion[], onError: (cause: unknown) => void) {
    this.#log = log
    for (const { tenant, requestedAt } of before) this.#handled.set(tenant, requestedAt)
    this.#onError = onError
  }

  /** Begins to look for deletions, every 3 s. */
  start(listener: DeletionListener): void {
    this.#listener = listener
    this.#timer = setInterval(() => {
      const look = this.look()
        .catch(this.#onError)
        .finally(() => this.#looks.delete(look))
      this.#looks.add(look)
    }, lookEveryMs).unref()
  }

  /** Adds a deletion by this app to the log. Call it inside `runExclusive`. */
  async add(deletion: DataDeletion): Promise<void> {
    this.#handled.set(deletion.tenant, await this.#log.add(deletion))
  }

  /** Records that the stored data of the tenant is deleted. */
  finish(deletion: DataDeletion): Promise<void> {
    return this.#log.finish(deletion)
  }

  /** Runs a task during which the watcher ignores deletions of the tenant. */
  async runExclusive<Result>(tenant: string, task: () => Promise<Result>): Promise<Result> {
    this.#inProgress.add(tenant)
    try {
      return await task()
    } finally {
      this.#inProgress.delete(tenant)
    }
  }

  async look(): Promise<void> {
    const handled = [...this.#handled.keys()]
    const deletions = await this.#log.read()
    const logged = new Set(deletions.map(({ tenant }) => tenant))
    for (const tenant of handled) if (!logged.has(tenant)) this.#handled.delete(tenant)
    // Several at once, because a model process that hangs must not delay the other deletions.
    const queue = deletions.values()
    await Promise.all(
      Array.from({ length: handledAtOnce }, async () => {
        for (const deletion of queue)
          if (!this.#inProgress.has(deletion.tenant))
            await this.runExclusive(deletion.tenant, () => this.#handle(deletion))
      }),
    )
  }

  /** Waits for work in the background. The database stays open. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await Promise.all(this.#looks)
  }

  async #handle(deletion: LoggedDeletion): Promise<void> {
    const { tenant, requestedAt, finishedAt, now } = deletion
    const isNew = this.#handled.get(tenant) !== requestedAt
    // Negative if the clock was ahead during the deletion.
    const ageMs = now - (finishedAt ?? requestedAt)
    if (!isNew && Math.abs(ageMs) >= repeatForMs) return
    await this.#listener?.(deletion, isNew)
    // Meanwhile, this app may have added a later deletion.
    if ((this.#handled.get(tenant) ?? 0) < requestedAt) this.#handled.set(tenant, requestedAt)
  }
}

const lookEveryMs = 3_000
const handledAtOnce = 16
/** Long enough for the calls of killed apps: their leases expire, and another app charges them. */
const repeatForMs = 60_000
