/** The replicas of an engine that has several servers for its models. */
import type { UpstreamFailure } from '../errors.ts'

/**
 * `ready`: gets calls. `starting`: gets fewer calls, because it has joined or returned. `overloaded`: has refused calls, and
 * gets some only if the others cannot take them. `ejected`: has failed, and gets calls only if all have. `draining`: ends its
 * running calls, and gets no others.
 */
export type ReplicaState = 'ready' | 'starting' | 'overloaded' | 'ejected' | 'draining'

/** What is known about one replica of a fleet. */
export interface ReplicaStatus {
  /** Name of the engine in the option `engines`. Absent for the only engine of the app. */
  readonly engine?: string
  /** URL of the server, without credentials. */
  readonly url: string
  /** Whether the replica gets calls. */
  readonly state: ReplicaState
  /** Calls of this app process that run there. */
  readonly runningCalls: number
  /** Tokens that these calls have still to evaluate and to generate, as an estimate. */
  readonly outstandingTokens: number
  /** Calls that have gone there, also those that failed. */
  readonly calls: number
  /** Those of `calls` that failed at the replica. */
  readonly failedCalls: number
  /** Tokens of the prompts of ended calls, as the server has counted them. */
  readonly inputTokens: number
  /** Those of `inputTokens` that the server has found in its cache. */
  readonly cachedTokens: number
  /** How often the replica was ejected because of failures. */
  readonly ejections: number
  /** Undefined without a failure. */
  readonly lastFailure: { readonly kind: ReplicaFailure; readonly at: Date } | undefined
}

/** `overloaded`: the replica refuses calls now. `missing`: it lacks the model. The others are as in an error. */
export type ReplicaFailure = UpstreamFailure | 'overloaded' | 'missing'

/** `return`: after an ejection. `leave`: it is no longer in the list. */
export interface ReplicaEvent {
  /** What has happened to the replica. */
  readonly type: 'join' | 'leave' | 'eject' | 'return'
  /** As in `ReplicaStatus`. */
  readonly engine?: string
  /** URL of the server, without credentials. */
  readonly url: string
  /** Why the replica was ejected. Only events of the type `eject` have it. */
  readonly failure?: ReplicaFailure | undefined
}
