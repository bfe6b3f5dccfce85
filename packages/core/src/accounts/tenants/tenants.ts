/** Deletes all data of one tenant, in all apps that share the database. */
import { invalidRequest, LlmError } from '../../errors.ts'
import type { LoggedDeletion } from './deletion-log.ts'
import type { DeletionWatcher } from './deletion-watcher.ts'
import type { DataDeletion, DeletedCounts, TenantData, UsageDeletion } from './tenant-data.ts'

export interface DeleteTenantOptions {
  /**
   * What happens to the tenant's usage. `delete` deletes it. `anonymize` deletes the rows of calls, and keeps the
   * sums per day and model without the caller and the tenant.
   *
   * @default 'delete'
   */
  readonly usage?: UsageDeletion | undefined
}

/** What was deleted. A repeated deletion counts only what was left. */
export interface DeletedTenant {
  readonly tenant: string
  /** Keys that were not revoked before. */
  readonly revokedKeys: number
  /** Calls that ran in this app. Other apps end theirs within 10 s. */
  readonly endedCalls: number
  /** Prompt states in model processes of this app. Other apps delete theirs within 10 s. */
  readonly promptStates: number
  /**
   * Entries in stores, by name: `batches`, `files`, `responses`, `conversations`, `keys`, `limitRequests`, `calls`,
   * `usageSums` or `anonymizedSums`, `spending`, `trafficSums`, `erasedAuditEntries`.
   */
  readonly deleted: DeletedCounts
}

export interface TenantsParts {
  /** Stores with data of tenants, in the order of deletion. */
  readonly stores: readonly TenantData[]
  /** Revokes the keys of a tenant, and returns how many were not revoked before. */
  revokeKeys(tenant: string): Promise<number>
  /** Ends the running calls of a tenant in this app, waits until they are charged, and returns their number. */
  endCalls(tenant: string): Promise<number>
  /** Deletes the prompt states of a tenant from the models of this app, and returns their number. */
  deletePromptStates(tenant: string): Promise<number>
}

export class Tenants {
  readonly #parts: TenantsParts
  readonly #watcher: DeletionWatcher | undefined

  /** @param watcher if undefined, a deletion reaches this app only */
  constructor(parts: TenantsParts, watcher: DeletionWatcher | undefined) {
    this.#parts = parts
    this.#watcher = watcher
    watcher?.start((deletion, isNew) => this.#follow(deletion, isNew))
  }

  /**
   * Deletes the keys, usage, prompt states and stored content of a tenant. First revokes its keys and ends its
   * running calls. If it fails, or this process ends before it resolves, delete the tenant again. Rejects with an
   * `LlmError`: `invalid_request` for an empty id, `conflict` if keys of the tenant are created again and again.
   *
   * The app must not let the tenant's users make further calls. A later call of the same tenant is stored again.
   */
  async delete(id: string, options: DeleteTenantOptions = {}): Promise<DeletedTenant> {
    const deletion = { tenant: checkId(id), usage: checkUsage(options.usage) }
    const task = (): Promise<DeletedTenant> => this.#delete(deletion)
    return this.#watcher ? this.#watcher.runExclusive(deletion.tenant, task) : task()
  }

  /** Waits for work in the background. The database stays open. */
  async close(): Promise<void> {
    await this.#watcher?.close()
  }

  /** Repeats the deletion while keys of the tenant are created, because their calls may run already. */
  async #delete(deletion: DataDeletion): Promise<DeletedTenant> {
    const { tenant } = deletion
    let result: DeletedTenant = { tenant, revokedKeys: 0, endedCalls: 0, promptStates: 0, deleted: {} }
    for (let pass = 0; pass < maxPasses; pass++) {
      const revokedKeys = await this.#parts.revokeKeys(tenant)
      if (pass > 0 && revokedKeys === 0) {
        await this.#watcher?.finish(deletion)
        return result
      }
      // At the same time, so that no call that the revocation ends is over before it is counted.
      const [endedCalls] = await Promise.all([this.#parts.endCalls(tenant), this.#watcher?.add(deletion)])
      const promptStates = await this.#parts.deletePromptStates(tenant)
      const deleted = await this.#deleteStored(deletion)
      result = {
        tenant,
        revokedKeys: result.revokedKeys + revokedKeys,
        endedCalls: result.endedCalls + endedCalls,
        promptStates: result.promptStates + promptStates,
        deleted: addCounts(result.deleted, deleted),
      }
    }
    throw keysCreated()
  }

  /**
   * Does in this app what another app cannot. Once that app has deleted the stored data, also deletes what calls
   * have stored since.
   */
  async #follow({ finishedAt, now, ...deletion }: LoggedDeletion, isNew: boolean): Promise<void> {
    const { tenant } = deletion
    const endedCalls = isNew ? await this.#parts.endCalls(tenant) : 0
    await this.#parts.deletePromptStates(tenant)
    if (finishedAt === undefined) return
    const time = Math.min(finishedAt, now)
    if (endedCalls > 0 || (await this.#hasCallsBefore(tenant, time))) await this.#deleteStored(deletion)
  }

  async #hasCallsBefore(tenant: string, time: number): Promise<boolean> {
    for (const store of this.#parts.stores) if (await store.hasCallsBefore?.(tenant, time)) return true
    return false
  }

  async #deleteStored(deletion: DataDeletion): Promise<DeletedCounts> {
    let counts: DeletedCounts = {}
    for (const store of this.#parts.stores) counts = addCounts(counts, await store.deleteTenant(deletion))
    return counts
  }
}

const maxPasses = 5

const addCounts = (counts: DeletedCounts, others: DeletedCounts): DeletedCounts => ({
  ...counts,
  ...Object.fromEntries(Object.entries(others).map(([name, count]) => [name, (counts[name] ?? 0) + count])),
})

function checkId(id: unknown): string {
  // The empty id is the tenant of the app's own calls.
  if (typeof id === 'string' && id !== '') return id
  throw invalidRequest('id: Expected the id of a tenant, a string that is not empty.', { param: 'id' })
}

function checkUsage(usage: UsageDeletion = 'delete'): UsageDeletion {
  if (usage === 'delete' || usage === 'anonymize') return usage
  throw invalidRequest("usage: Expected 'delete' or 'anonymize'.", { param: 'usage' })
}

const keysCreated = (): LlmError =>
  new LlmError(
    'conflict',
    'Keys of this tenant are created while it is deleted. Stop that, and delete the tenant again.',
  )
