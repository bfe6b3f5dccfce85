/** Lets a shutdown wait for the transfers of models, and end them. */
import { LlmError } from '../errors.ts'
import type { TransferOptions } from '../models/registry/progress.ts'
import type { StoreActions } from './model-actions.ts'
import type { Shutdown } from './shutdown.ts'

type Transfer<Input> = (input: Input, options?: Partial<TransferOptions>) => ReturnType<StoreActions['push']>
type StartTransfer<Input> = (
  input: Input,
  options: Partial<TransferOptions>,
) => ReturnType<StoreActions['pull']>

/** Returns the actions of a store whose pulls, pushes and creations count as work of the app. */
export function admitTransfers(models: StoreActions, shutdown: Shutdown): StoreActions {
  const admitted = <Input>(start: StartTransfer<Input>): Transfer<Input> =>
    async function* (input, options = {}) {
      const leave = shutdown.admit({})
      const { signal } = options
      const ended = shutdown.signal
      let isComplete = false
      try {
        const all = signal ? AbortSignal.any([signal, ended]) : ended
        for await (const progress of start(input, { ...options, signal: all })) {
          isComplete = progress.status === 'success'
          yield progress
        }
      } catch (cause) {
        throw ended.aborted && !LlmError.is(cause) ? ended.reason : cause
      } finally {
        leave()
      }
      // An aborted transfer ends without an error.
      if (!isComplete && ended.aborted && !signal?.aborted) throw ended.reason
    }
  return {
    list: () => models.list(),
    snapshots: () => models.snapshots(),
    get: (name) => models.get(name),
    details: (model, options) => models.details(model, options),
    copy: (from, to, options) => models.copy(from, to, options),
    delete: (name) => models.delete(name),
    prune: () => models.prune(),
    blobs: models.blobs,
    pull: admitted((name: string, options) => models.pull(name, options)),
    push: admitted((name: string, options) => models.push(name, options)),
    create: admitted((spec: Parameters<StoreActions['create']>[0], options) => models.create(spec, options)),
  }
}
