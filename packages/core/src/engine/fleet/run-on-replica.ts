/** Runs a call without a stream on the best replica, and again on others while replicas fail. */
import { LlmError } from '../../errors.ts'
import type { EngineCall } from '../engine.ts'
import type { UpstreamEngine } from '../upstream/upstream-engine.ts'
import type { FleetRouter, RoutedCall } from './fleet-router.ts'
import type { CallLease, Replica } from './replica.ts'
import { toReplicaFailure } from './replica-failure.ts'
import type { RetryBudget } from './retry-budget.ts'

interface RunSettings {
  readonly router: FleetRouter
  readonly budget: RetryBudget
  readonly maxRetries: number
}

/** Rejects with the reason of the signal if it aborts, else with an `LlmError`. */
export async function runOnReplica<Result>(
  routed: RoutedCall,
  call: EngineCall,
  work: (engine: UpstreamEngine, call: EngineCall) => Promise<Result>,
  { router, budget, maxRetries }: RunSettings,
): Promise<Result> {
  const tried = new Set<Replica>()
  const failed: CallLease[] = []
  const ownCall = withCountsOnce(call)
  let error: unknown
  budget.onCall()
  for (let attempt = 0; ; attempt++) {
    const begun = await router.begin(routed, tried, call.signal)
    if (!begun) throw error
    const { replica, lease } = begun
    tried.add(replica)
    try {
      const result = await work(replica.engine, ownCall())
      replica.onAnswer()
      lease.end()
      for (const before of failed) before.confirmFailure()
      return result
    } catch (cause) {
      lease.end(call.signal.aborted ? undefined : cause)
      failed.push(lease)
      call.signal.throwIfAborted()
      // A caller can wait for a server that is overloaded, but not for one that is away.
      if (!(LlmError.is(error) && error.code === 'overloaded')) error = cause
      if (!toReplicaFailure(cause) || attempt >= maxRetries || !budget.take()) throw error
    }
  }
}

/** Returns a function that returns the call of each attempt. Texts that several attempts evaluate count once. */
function withCountsOnce({ onInputTokens, ...call }: EngineCall): () => EngineCall {
  if (!onInputTokens) return () => call
  let counted = 0
  return () => {
    let evaluated = 0
    return {
      ...call,
      onInputTokens: (tokens) => {
        evaluated += tokens
        if (evaluated <= counted) return
        onInputTokens(evaluated - counted)
        counted = evaluated
      },
    }
  }
}
