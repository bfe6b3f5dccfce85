/** Tells failures of a replica from errors of a caller. */
import { LlmError } from '../../errors.ts'
import type { ReplicaFailure } from '../replicas.ts'

/** Returns undefined for an error that each replica would return. */
export function toReplicaFailure(error: unknown): ReplicaFailure | undefined {
  if (!LlmError.is(error)) return 'failed'
  if (error.code === 'overloaded') return 'overloaded'
  if (error.code === 'not_found') return 'missing'
  // Another app with Modelmount reports its own failures by these codes.
  if (error.code === 'internal' || error.code === 'unavailable') return 'failed'
  return error.code === 'upstream' ? (error.details.upstreamFailure ?? 'failed') : undefined
}
