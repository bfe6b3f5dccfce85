import { basename } from 'node:path'
import type { GgufInsights, Llama, LlamaModel, LlamaModelOptions } from 'node-llama-cpp'
import { LlmError } from '../../../../errors.ts'
import { describeMissingBuild } from '../../ipc/missing-engine.ts'
import type { ProcessConfig } from '../../ipc/process-config.ts'
import type { ModelBackend, RuntimeModel, StepCounter } from '../model.ts'
import { detectModelTask } from '../model-kind.ts'
import { minChunkSize } from '../resources/calibrate.ts'
import { describePlacement } from '../resources/gpu-placement.ts'
import { type LoadPlan, type MemoryBroker, planMemory } from '../resources/load-plan.ts'
import { type MemorySpace, readMachineMemory } from '../resources/machine-memory.ts'
import type { Runner } from '../runner.ts'
import { stepsBesideDecoding } from '../steps-beside-decoding.ts'
import { Turns } from '../workers/turns.ts'
import { openDecoder } from './addon-decoder.ts'
import { openGenerativeModel } from './generative-model.ts'
import { type Libllama, openLibllama } from './libllama.ts'
import { cacheTypesOf, importLibrary, type LlamaLibrary, startLibrary } from './library.ts'
import { canEvaluateBatches, openPoolingModel } from './pooling-model.ts'
import { openVocabulary } from './vocabulary.ts'

/** Maximum number of prompt tokens in a chunk. A call can be cancelled between two chunks. */
const chunkSizes = { cpu: minChunkSize, gpu: 512 }

/**
 * Loads a model file. With little memory, the model decodes fewer sequences in parallel.
 * @param open opens the decoder. If it returns `undefined`, sequences are decoded one at a time
 * @param memory shares memory with other processes. Without it, the model may use all free memory
 * @param warn reports problems after the load to the app's log
 * @param onLoadProgress called with the loaded part of the weights, from 0 to 1
 * @param openNative opens the FFI for pooling models. If it returns `undefined`, they evaluate one text at a time
 */
export async function loadModel(
  config: ProcessConfig,
  progress: StepCounter,
  open: typeof openDecoder = openDecoder,
  memory: MemoryBroker = unreservedMemory,
  warn: (message: string) => void = () => {},
  onLoadProgress: (fraction: number) => void = () => {},
  openNative: typeof openLibllama = openLibllama,
): Promise<RuntimeModel> {
  const library = await importLibrary()
  let runner: Runner | undefined
  const isDecoding = (): boolean => runner?.isDecoding ?? false
  const turns = new Turns(isDecoding)
  const beside = stepsBesideDecoding(progress, isDecoding)
  try {
    const llama = await startLibrary(library, { maxThreads: config.threads })
    const options: LlamaModelOptions = {
      modelPath: config.modelPath,
      gpuLayers: config.gpuLayers,
      defaultContextFlashAttention: config.flashAttention ?? 'auto',
      onLoadProgress: (fraction) => {
        progress.steps++
        onLoadProgress(fraction)
      },
    }
    const environment = {
      ...memory,
      readVram: () => readFreeVram(llama),
      chunkSizes,
      cacheTypes: cacheTypesOf(library),
    }
    let libllama: Libllama | undefined
    const { model, plan } = await loadWithPlan(library, llama, options, async (insights) => {
      libllama = canEvaluateBatches(insights) ? await openNative(llama) : undefined
      // libllama loads the weights then.
      options.vocabOnly = libllama !== undefined
      return planMemory(config, insights, environment)
    })
    const kind = detectModelTask(model.fileInsights)
    const backend: ModelBackend & Partial<Pick<RuntimeModel, 'notes'>> =
      kind === 'generate'
        ? await openGenerativeModel({ library, llama, model, plan, turns }, config, progress, open, warn)
        : await openPoolingModel(
            {
              model,
              plan,
              libllama,
              loadWhole: () => llama.loadModel({ ...options, vocabOnly: false }),
            },
            config,
            kind,
            progress,
          )
    runner = backend.runner
    const { contextSize, need, mappedBytes, vram } = plan
    const { gpuLayers } = model
    const { totalLayers } = model.fileInsights
    return {
      name: config.modelName,
      fingerprint: config.fingerprint,
      contextSize,
      // Estimates can be fractional, but clients parse integers.
      sizeBytes: Math.round(need.ram + need.vram),
      gpuBytes: Math.round(need.vram),
      gpuLayers,
      mappedBytes,
      ...openVocabulary(model, config.modelPath, contextSize, beside, turns),
      ...backend,
      notes: [
        ...plan.notes,
        ...describePlacement(config, { gpuLayers, totalLayers, vram, backend: llama.gpu }),
        ...(backend.notes ?? []),
      ],
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
 * Plans the load after node-llama-cpp has read the file header and before it reads the weights. The library
 * has no hook for this, so its `GgufInsights.from` is replaced meanwhile. Reading the header separately would
 * double the time for the header.
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

/** Reads the memory of all graphics cards, without the part that the library leaves to other programs. */
async function readFreeVram(llama: Pick<Llama, 'getVramState' | 'vramPaddingSize'>): Promise<MemorySpace> {
  const { free, total } = await llama.getVramState()
  const without = (bytes: number): number => Math.max(0, bytes - llama.vramPaddingSize)
  return { free: without(free), total: without(total) }
}

const unreservedMemory: MemoryBroker = {
  reserve: async (...[, readVram]) => ({ ram: readMachineMemory(), vram: await readVram() }),
  waitForMemory: async () => false,
  waitForVramLoads: async () => false,
}

const stripPaths = (message: string, { modelPath, adapters = [] }: ProcessConfig): string =>
  adapters.reduce(
    (text, { path }) => text.replaceAll(path, basename(path)),
    message.replaceAll(modelPath, 'the file'),
  )
