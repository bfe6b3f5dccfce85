import type { GgufInsights, LlamaModel } from 'node-llama-cpp'
import { LlmError } from '../../../../errors.ts'
import type { ModelTask } from '../../ipc/messages.ts'
import type { ProcessConfig } from '../../ipc/process-config.ts'
import type { ModelBackend, RuntimeModel, StepCounter } from '../model.ts'
import { detectModelTask } from '../model-kind.ts'
import type { PoolingContexts } from '../pooling.ts'
import { defaultStepMs } from '../resources/calibrate.ts'
import type { LoadPlan } from '../resources/load-plan.ts'
import { nothingCached } from '../runner.ts'
import { openBatchContexts } from './batch-contexts.ts'
import type { Libllama } from './libllama.ts'
import { hasRankingTemplate, openPoolingContexts, rankingFormatOf } from './pooling-contexts.ts'

interface PoolingModelHandles {
  /** Has only the vocabulary if `libllama` is set. */
  readonly model: LlamaModel
  readonly plan: LoadPlan
  /** Loads the weights, if `model` does not have them. */
  readonly libllama: Libllama | undefined
  /** Loads the same model with its weights. */
  readonly loadWhole: () => Promise<LlamaModel>
}

/** Whether `libllama` can evaluate this model. A template for ranking is applied by node-llama-cpp only. */
export const canEvaluateBatches = (insights: GgufInsights): boolean => {
  const task = detectModelTask(insights)
  return task === 'embed' || (task === 'rerank' && !hasRankingTemplate(insights.ggufFileInfo))
}

/** Opens an embedding or reranking model. Throws an `LlmError` `upstream` for a model with adapters. */
export async function openPoolingModel(
  handles: PoolingModelHandles,
  config: ProcessConfig,
  kind: Exclude<ModelTask, 'generate'>,
  progress: StepCounter,
): Promise<ModelBackend & Pick<RuntimeModel, 'notes'>> {
  const { modelName, adapters = [] } = config
  const { model, plan, loadWhole } = handles
  const { contextSize, parallel } = plan
  if (adapters.length > 0) throw adaptersNotSupported(modelName)
  const batched = kind === 'unsupported' ? undefined : await openBatched(handles, config, kind, progress)
  const openSingle = async (): Promise<PoolingContexts | undefined> =>
    kind === 'unsupported'
      ? undefined
      : openPoolingContexts(handles.libllama ? await loadWhole() : model, kind, contextSize, parallel)
  const pooling = batched ?? (await openSingle())
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
    notes: pooling && !batched && canEvaluateBatches(model.fileInsights) ? [describeFallback(modelName)] : [],
  }
}

/** Returns `undefined` if the library cannot load the weights, or if its vectors are wrong in a batch. */
async function openBatched(
  { model, plan, libllama }: PoolingModelHandles,
  { modelPath }: ProcessConfig,
  kind: 'embed' | 'rerank',
  progress: StepCounter,
): Promise<PoolingContexts | undefined> {
  if (!libllama) return undefined
  const { contextSize, parallel: maxContexts, gpuLayers, flashAttention } = plan
  const onProgress = (): void => void progress.steps++
  try {
    const weights = await libllama.loadWeights({ modelPath, gpuLayers, onProgress })
    const join = kind === 'rerank' ? rankingFormatOf(model) : undefined
    const isOnGpu = gpuLayers > 0
    return await openBatchContexts(weights, { kind, contextSize, maxContexts, flashAttention, isOnGpu, join })
  } catch {
    return undefined
  }
}

const describeFallback = (name: string): string =>
  `The model "${name}" evaluates one text at a time, which is slower for short texts. Many texts at a time need the package koffi and node-llama-cpp 3.22.1.`

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
