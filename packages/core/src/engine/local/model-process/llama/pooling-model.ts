/** A model that reads, and does not write. */
import type { LlamaModel } from 'node-llama-cpp'
import { LlmError } from '../../../../errors.ts'
import type { ProcessConfig } from '../../ipc/protocol.ts'
import type { ModelBackend } from '../model.ts'
import type { ModelTask } from '../model-kind.ts'
import { defaultStepMs } from '../resources/calibrate.ts'
import type { LoadPlan } from '../resources/load-plan.ts'
import { openPoolingContexts } from './pooling-contexts.ts'

/** Throws `upstream` where it is to have adapters. */
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
    parallel,
    stepMs: pooling?.stepMs ?? defaultStepMs,
    runner: {
      run: () => Promise.reject(chatNotSupported(modelName)),
      wake: () => {},
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
    `The model "${name}" reads texts, and cannot have adapters: they are for models that write.`,
  )

const chatNotSupported = (name: string): LlmError =>
  new LlmError('invalid_request', `The model "${name}" reads texts, and cannot chat.`, { param: 'model' })
