/** From a model's file to what the rest of the process sees of it. */
import { basename } from 'node:path'
import type { GgufInsights, Llama, LlamaModel, LlamaModelOptions } from 'node-llama-cpp'
import { LlmError } from '../../../../errors.ts'
import type { ProcessConfig } from '../../ipc/protocol.ts'
import type { Binding, Progress } from '../model.ts'
import { purposeOf } from '../model-kind.ts'
import { smallestChunk } from '../resources/calibrate.ts'
import { machineMemory } from '../resources/machine-memory.ts'
import { type Plan, planMemory, type Room } from '../resources/memory.ts'
import { openDecoder } from './addon-decoder.ts'
import { openWriter } from './generative-model.ts'
import { cacheTypesOf, importLibrary, type Library, startLibrary } from './library.ts'
import { missingBuild } from './missing-engine.ts'
import { openReader } from './pooling-model.ts'
import { tokensOf } from './tokens.ts'

/** Prompts are read in pieces of these sizes at most, so that a call can be cancelled between two. */
const chunkSizes = { cpu: smallestChunk, gpu: 512 }

/**
 * @param open the way to the library's inside; where it leads nowhere, answers are made one after the other
 * @param room in memory; without the others of the machine there is what is free
 */
export async function loadModel(
  config: ProcessConfig,
  progress: Progress,
  open: typeof openDecoder = openDecoder,
  room: Room = freeRoom,
): Promise<Binding> {
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
    const { model, plan } = await loadPlanned(library, llama, options, async (insights) =>
      planMemory(config, insights, {
        ...room,
        vram: await llama.getVramState(),
        chunkSizes,
        cacheTypes: cacheTypesOf(library),
      }),
    )
    const purpose = purposeOf(model.fileInsights)
    const use =
      purpose === 'text'
        ? await openWriter({ library, llama, model, plan }, config, progress, open)
        : await openReader(model, plan, config, purpose)
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
      ...tokensOf(model, contextSize),
      ...use,
    }
  } catch (cause) {
    if (cause instanceof LlmError) throw cause
    const reason = cause instanceof Error ? withoutPaths(cause.message, config) : String(cause)
    const message =
      cause instanceof library.NoBinaryFoundError
        ? missingBuild(await library.getModuleVersion())
        : `The model "${config.modelName}" could not be loaded: ${reason}`
    throw new LlmError('upstream', message, {}, { cause })
  }
}

/**
 * Plans when the library has read the header of the file, and not yet the weights. It lets nobody in there;
 * but it makes its insights just then, and to make them beside it would cost as much again.
 */
async function loadPlanned(
  { GgufInsights: maker }: Library,
  llama: Llama,
  options: LlamaModelOptions,
  planFor: (insights: GgufInsights) => Promise<Plan>,
): Promise<{ readonly model: LlamaModel; readonly plan: Plan }> {
  const { from } = maker
  let plan: Plan | undefined
  maker.from = async (...header) => {
    const insights = await from.apply(maker, header)
    plan = await planFor(insights)
    options.gpuLayers = plan.gpuLayers
    return insights
  }
  try {
    const model = await llama.loadModel(options)
    return { model, plan: plan ?? (await planFor(model.fileInsights)) }
  } finally {
    maker.from = from
  }
}

const freeRoom: Room = {
  roomFor: async () => machineMemory(),
  waitForRoom: async () => false,
}

const withoutPaths = (message: string, { modelPath, adapters = [] }: ProcessConfig): string =>
  adapters.reduce(
    (text, { path }) => text.replaceAll(path, basename(path)),
    message.replaceAll(modelPath, 'the file'),
  )
