/** Which replicas have which models. */
import type { Model } from '../../models/model.ts'
import type { Replica } from './replica.ts'

/** Returns the replicas that have a model. Rejects with an `LlmError` if none is known to have it, and one does not answer. */
export async function replicasWith(model: string, replicas: readonly Replica[]): Promise<readonly Replica[]> {
  const known = replicas.filter(({ engine }) => engine.knownModel(model))
  if (known.length > 0) return known
  const found = await Promise.allSettled(replicas.map(({ engine }) => engine.findModel(model)))
  const having = replicas.filter((_, index) => {
    const result = found[index]
    return result?.status === 'fulfilled' && result.value
  })
  const failed = found.find(({ status }) => status === 'rejected')
  if (having.length === 0 && failed) throw (failed as PromiseRejectedResult).reason
  return having
}

/** Returns the models of all replicas, each once. */
export async function listModels(replicas: readonly Replica[]): Promise<readonly Model[]> {
  const lists = await Promise.all(replicas.map(({ engine }) => engine.listModels()))
  const models = new Map<string, Model>()
  for (const model of lists.flat()) if (!models.has(model.name)) models.set(model.name, model)
  return [...models.values()]
}
