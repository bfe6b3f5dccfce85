/** Which replicas have which models. */
import type { Model } from '../../models/model.ts'
import { withTimeout } from '../../util/with-timeout.ts'
import type { Replica } from './replica.ts'

/** How long a call waits for the lists of the other replicas when one has its model, in ms. One of them may be away. */
const graceMs = 250

/** Returns the replicas that have a model. Rejects with an `LlmError` if none is known to have it, and one does not answer. */
export async function replicasWith(model: string, replicas: readonly Replica[]): Promise<readonly Replica[]> {
  const findKnown = () => replicas.filter(({ engine }) => engine.knownModel(model))
  const known = findKnown()
  if (known.length > 0) return known
  const reads = replicas.map(({ engine }) => engine.findModel(model))
  const all = Promise.allSettled(reads)
  const first = Promise.any(reads.map(async (read) => (await read) ?? Promise.reject()))
  await first.then(
    () => withTimeout(all, graceMs),
    () => all,
  )
  const having = findKnown()
  const failed = having.length === 0 && (await all).find(({ status }) => status === 'rejected')
  if (failed) throw (failed as PromiseRejectedResult).reason
  return having
}

/** Returns the models of all replicas, each once. */
export async function listModels(replicas: readonly Replica[]): Promise<readonly Model[]> {
  const lists = await Promise.all(replicas.map(({ engine }) => engine.listModels()))
  const models = new Map<string, Model>()
  for (const model of lists.flat()) if (!models.has(model.name)) models.set(model.name, model)
  return [...models.values()]
}
