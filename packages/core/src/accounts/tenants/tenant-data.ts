/** The interface of everything that stores data of tenants. */

/** What happens to the usage of a deleted tenant. */
export type UsageDeletion = 'delete' | 'anonymize'

export interface DataDeletion {
  readonly tenant: string
  readonly usage: UsageDeletion
}

/** How many entries were deleted, by a name for the report, such as `keys`. */
export type DeletedCounts = Readonly<Record<string, number>>

/**
 * A store with data of tenants. A new store joins the deletion of tenants when `create-llm.ts` adds it to the list
 * of `Tenants`.
 */
export interface TenantData {
  /**
   * Deletes all data of a tenant and says how much it was. Must be repeatable: after a crash in the middle, the
   * next deletion deletes the rest. Works in batches, so that other queries run in between.
   */
  deleteTenant(deletion: DataDeletion): Promise<DeletedCounts>
  /**
   * Whether there is data of a call that began before this time, in milliseconds since 1970. Calls that other apps
   * end, or whose apps are killed, store their usage after the deletion. Absent if calls store nothing here.
   */
  hasCallsBefore?(tenant: string, time: number): Promise<boolean>
}
