import type { LlamaModel } from 'node-llama-cpp'
import { LlmError } from '../../../../errors.ts'
import type { ModelTask } from '../../ipc/messages.ts'
import type { ProcessConfig } from '../../ipc/process-config.ts'
import type { ModelBackend } from '../model.ts'
import { defaultStepMs } from '../resources/calibrate.ts'
import type { LoadPlan } from '../resources/load-plan.ts'
import { nothingCached } from '../runner.ts'
import { openPoolingContexts } from './pooling-contexts.ts'

/** Opens an embedding or reranking model. Throws an `LlmError` `upstream` for a model with adapters. */
export async function openPoolingModel(
  model: LlamaModel,
  { contextSize, parallel }: LoadPlan,
  { modelName, adapters = [] }: ProcessConfig,
  kind: Exclude<ModelTask, 'generate'>,
): Promise<ModelBackend> {
  if (adapters.length > 0) throw adaptersNotSupported(modelName)
  const pooling =
    kind === 'unsupported' ? undefined : await openPoolingContexts(model, kind, contextSize, parallel)
  return {
    task: kind,
    parallel,
    stepMs: pooling?.stepMs ?? defaultStepMs,
    runner: {
      isDecoding: false,
      get activity() {
        const { active = 0, waiting = 0 } = pooling?.pool ?? {}
        return { activeSequences: active, waitingSequences: waiting, ...nothingCached }
      },
      run: () => Promise.reject(chatNotSupported(modelName)),
      wake: () => {},
      deleteStates: async () => 0,
      cachedLength: () => 0,
      whenIdle: async () => pooling?.pool.whenIdle(),
    },
    compileGrammar: () => Promise.reject(chatNotSupported(modelName)),
    pooling,
    limitThreads: (max) => pooling?.pool.limitActive(max),
  }
}

const adaptersNotSupported = (name: string): LlmError =>
  new LlmError(
    'upstream',
    `The model "${name}" is a pooling model and does not support adapters. Remove them from its Modelfile.`,
  )

const chatNotSupported = (name: string): LlmError =>
  new LlmError(
    'invalid_request',
    `The model "${name}" is a pooling model and does not support chat or completion.`,
    { param: 'model' },
  )
