/** The entry point `@modelmount/core/fleet`: an engine whose models run on several servers. */
import type { Engine } from '../engine.ts'
import type { EngineHealth } from '../engine-health.ts'
import type { ReplicaEvent, ReplicaStatus } from '../replicas.ts'
import { FleetEngine } from './fleet-engine.ts'
import { type FleetOptions, resolveFleetOptions } from './options.ts'

export type { Balance } from './choose-replica.ts'
export type { ListReplicas, ReplicaDns, ReplicaSource } from './membership.ts'
export type { FleetHealthOptions, FleetOptions } from './options.ts'
export { openReplicaTable, type ReplicaTable, type ReplicaTableOptions } from './replica-table.ts'

/** An engine with replicas, which are servers with the same models. */
export interface Fleet extends Engine {
  readonly health: EngineHealth
  /** The replicas as they are now. Empty before the first call. */
  replicas(): readonly ReplicaStatus[]
  onReplicaEvent(listener: (event: ReplicaEvent) => void): () => void
  /**
   * Sends no more calls to a replica, such as before it is updated. Resolves when its running calls have ended. It stays
   * drained until `resume`.
   */
  drain(url: string | URL): Promise<void>
  /** Sends calls to a drained replica again. Does nothing for one that is not drained. */
  resume(url: string | URL): void
}

/**
 * Creates an engine for the models of several servers, the replicas. Each call goes to one of them: to the one that has most of
 * the prompt in its cache, while it has not much more to do than the others. A call whose replica fails before the first token
 * is sent to another one.
 *
 * It sends nothing before the first call. Close it with `llm.close()`. Throws a `TypeError` for an invalid option.
 */
export function fleetEngine(options: FleetOptions): Fleet {
  return new FleetEngine(resolveFleetOptions(options))
}
