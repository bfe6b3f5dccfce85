/** Lets a shutdown wait for the transfers of models, and end them. */
import { publish } from '../../diagnostics/channels.ts'
import type { TransferKind, TransferProgress } from '../../diagnostics/events.ts'
import { LlmError } from '../../errors.ts'
import type { Progress, TransferOptions } from '../../models/registry/progress.ts'
import type { Shutdown } from '../shutdown.ts'
import type { StoreActions } from './model-actions.ts'

/** Least time between two events of one transfer, in ms. */
const eventEveryMs = 500

type CreateSpec = Parameters<StoreActions['create']>[0]
type Transfer<Input> = (input: Input, options?: Partial<TransferOptions>) => ReturnType<StoreActions['push']>
type StartTransfer<Input> = (
  input: Input,
  options: Partial<TransferOptions>,
) => ReturnType<StoreActions['pull']>

/** Returns the actions of a store whose pulls, pushes and creations count as work of the app. */
export function admitTransfers(models: StoreActions, shutdown: Shutdown, llmOf: () => object): StoreActions {
  const admitted = <Input>(
    kind: TransferKind,
    modelOf: (input: Input) => string,
    start: StartTransfer<Input>,
  ): Transfer<Input> =>
    async function* (input, options = {}) {
      const leave = shutdown.admit({})
      const { signal } = options
      const ended = shutdown.signal
      let isComplete = false
      let failure: LlmError | undefined
      const report = createReporter({ llm: llmOf(), kind, model: modelOf(input) })
      try {
        const all = signal ? AbortSignal.any([signal, ended]) : ended
        for await (const progress of start(input, { ...options, signal: all })) {
          isComplete = progress.status === 'success'
          report(progress, isComplete)
          yield progress
        }
      } catch (cause) {
        const thrown = ended.aborted && !LlmError.is(cause) ? ended.reason : cause
        failure = LlmError.from(thrown)
        throw thrown
      } finally {
        if (!isComplete) report({ status: failure ? 'failed' : 'aborted' }, true, failure)
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
    pull: admitted('pull', nameOf, (name, options) => models.pull(name, options)),
    push: admitted('push', nameOf, (name, options) => models.push(name, options)),
    create: admitted(
      'create',
      ({ name }: CreateSpec) => name,
      (spec, options) => models.create(spec, options),
    ),
  }
}

const nameOf = (name: string): string => name

/** Publishes each new status, the first and the last progress of each blob, and some in between. */
function createReporter(transfer: Pick<TransferProgress, 'llm' | 'kind' | 'model'>) {
  /** By status, which also names the blob. */
  const reportedAt = new Map<string, number>()
  return (progress: Progress, isLast: boolean, error?: LlmError): void => {
    const { status, completedBytes, totalBytes } = progress
    const now = performance.now()
    const isWhole = completedBytes !== undefined && completedBytes === totalBytes
    if (!isLast && !isWhole && now - (reportedAt.get(status) ?? Number.NEGATIVE_INFINITY) < eventEveryMs)
      return
    reportedAt.set(status, now)
    publish('modelmount:pull:progress', () => ({ ...transfer, ...progress, isLast, error }))
  }
}
