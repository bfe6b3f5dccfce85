/** From a model's file to what the rest of the process sees of it. */
import { basename } from 'node:path'
import type { GgufInsights, Llama, LlamaModel, LlamaModelOptions } from 'node-llama-cpp'
import { LlmError } from '../../../../errors.ts'
import type { ProcessConfig } from '../../ipc/protocol.ts'
import type { RuntimeModel, StepCounter } from '../model.ts'
import { detectModelTask } from '../model-kind.ts'
import { minChunkSize } from '../resources/calibrate.ts'
import { type LoadPlan, type MemoryBroker, planMemory } from '../resources/load-plan.ts'
import { readMachineMemory } from '../resources/machine-memory.ts'
import { openDecoder } from './addon-decoder.ts'
import { openGenerativeModel } from './generative-model.ts'
import { cacheTypesOf, importLibrary, type LlamaLibrary, startLibrary } from './library.ts'
import { describeMissingBuild } from './missing-engine.ts'
import { openPoolingModel } from './pooling-model.ts'
import { openVocabulary } from './vocabulary.ts'

/** Prompts are read in pieces of these sizes at most, so that a call can be cancelled between two. */
const chunkSizes = { cpu: minChunkSize, gpu: 512 }

/**
 * @param open the way to the library's inside; where it leads nowhere, answers are made one after the other
 * @param memory in memory; without the others of the machine there is what is free
 */
export async function loadModel(
  config: ProcessConfig,
  progress: StepCounter,
  open: typeof openDecoder = openDecoder,
  memory: MemoryBroker = unreservedMemory,
): Promise<RuntimeModel> {
  const library = await importLibrary()
  try {
    const llama = await startLibrary(library, { maxThreads: config.threads })
    const options: LlamaModelOptions = {
      modelPath: config.modelPath,
      gpuLayers: config.gpuLayers,
      defaultContextFlashAttention: config.flashAttention ?? 'auto',
      onLoadProgress: () => {
        progress.steps++
      },
    }
    const { model, plan } = await loadWithPlan(library, llama, options, async (insights) =>
      planMemory(config, insights, {
        ...memory,
        vram: await llama.getVramState(),
        chunkSizes,
        cacheTypes: cacheTypesOf(library),
      }),
    )
    const kind = detectModelTask(model.fileInsights)
    const backend =
      kind === 'generate'
        ? await openGenerativeModel({ library, llama, model, plan }, config, progress, open)
        : await openPoolingModel(model, plan, config, kind)
    const { contextSize, need, mappedBytes, notes } = plan
    return {
      name: config.modelName,
      fingerprint: config.fingerprint,
      contextSize,
      // Estimates, which need not be whole; clients read them as whole numbers.
      sizeBytes: Math.round(need.ram + need.vram),
      gpuBytes: Math.round(need.vram),
      mappedBytes,
      notes,
      ...openVocabulary(model, contextSize),
      ...backend,
    }
  } catch (cause) {
    if (cause instanceof LlmError) throw cause
    const reason = cause instanceof Error ? stripPaths(cause.message, config) : String(cause)
    const message =
      cause instanceof library.NoBinaryFoundError
        ? describeMissingBuild(await library.getModuleVersion())
        : `The model "${config.modelName}" could not be loaded: ${reason}`
    throw new LlmError('upstream', message, {}, { cause })
  }
}

/**
 * Plans when the library has read the header of the file, and not yet the weights. It lets nobody in there;
 * but it makes its insights just then, and to make them beside it would cost as much again.
 */
async function loadWithPlan(
  { GgufInsights: insightsClass }: LlamaLibrary,
  llama: Llama,
  options: LlamaModelOptions,
  planFor: (insights: GgufInsights) => Promise<LoadPlan>,
): Promise<{ readonly model: LlamaModel; readonly plan: LoadPlan }> {
  const { from } = insightsClass
  let plan: LoadPlan | undefined
  insightsClass.from = async (...header) => {
    const insights = await from.apply(insightsClass, header)
    plan = await planFor(insights)
    options.gpuLayers = plan.gpuLayers
    return insights
  }
  try {
    const model = await llama.loadModel(options)
    return { model, plan: plan ?? (await planFor(model.fileInsights)) }
  } finally {
    insightsClass.from = from
  }
}

const unreservedMemory: MemoryBroker = {
  reserve: async () => readMachineMemory(),
  waitForMemory: async () => false,
}

const stripPaths = (message: string, { modelPath, adapters = [] }: ProcessConfig): string =>
  adapters.reduce(
    (text, { path }) => text.replaceAll(path, basename(path)),
    message.replaceAll(modelPath, 'the file'),
  )
