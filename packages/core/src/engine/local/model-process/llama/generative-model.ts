/** Opens a generative model: its context, decoder and scheduler. */
import type { Llama, LlamaContext, LlamaModel } from 'node-llama-cpp'
import type { ProcessConfig } from '../../ipc/process-config.ts'
import { Scheduler } from '../decoding/scheduler.ts'
import { SequentialRunner } from '../decoding/sequential-runner.ts'
import { openSnapshotStore, type SnapshotStore } from '../kv-cache/snapshots.ts'
import type { ModelBackend, StepCounter } from '../model.ts'
import { calibrate, defaultStepMs, listThreadCandidates } from '../resources/calibrate.ts'
import type { LoadPlan } from '../resources/load-plan.ts'
import type { openDecoder } from './addon-decoder.ts'
import { createGrammarCompiler } from './compiled-grammars.ts'
import { cacheTypesOf, type LlamaLibrary } from './library.ts'
import { toTokenBias } from './token-bias.ts'

interface LlamaModelHandles {
  readonly library: LlamaLibrary
  readonly llama: Llama
  readonly model: LlamaModel
  readonly plan: LoadPlan
}

/** @param open opens the decoder. If it returns `undefined`, sequences are decoded one at a time */
export async function openGenerativeModel(
  { library, llama, model, plan }: LlamaModelHandles,
  config: ProcessConfig,
  progress: StepCounter,
  open: typeof openDecoder,
): Promise<ModelBackend> {
  const context = await createContext(library, model, plan, config)
  const common = { compileGrammar: createGrammarCompiler(library, llama, model), pooling: undefined }
  const decoder = open(llama, model, context, plan)
  if (!decoder)
    return {
      ...common,
      parallel: 1,
      stepMs: defaultStepMs,
      runner: new SequentialRunner(
        context.getSequence(),
        (pairs) => toTokenBias(library, model, pairs),
        plan.chunkSize,
        progress,
      ),
      limitThreads() {},
    }
  const { threads, tuneThreads } = config
  const best = await calibrate(decoder, tuneThreads ? listThreadCandidates(threads) : [threads])
  decoder.chunkSize = best.chunkSize
  const limitThreads = (max: number): void =>
    decoder.setThreads(Math.min(best.threads, max), Math.min(threads, max))
  limitThreads(threads)
  return {
    ...common,
    parallel: plan.parallel,
    stepMs: best.stepMs,
    runner: new Scheduler(decoder, progress, openProcessSnapshots(config)),
    limitThreads,
  }
}

function createContext(
  library: LlamaLibrary,
  model: LlamaModel,
  { contextSize, parallel, batchSize, flashAttention, kvCacheType }: LoadPlan,
  { threads, adapters = [] }: ProcessConfig,
): Promise<LlamaContext> {
  const cacheType = cacheTypesOf(library)[kvCacheType]
  return model.createContext({
    contextSize,
    sequences: parallel,
    threads,
    batchSize,
    flashAttention,
    experimentalKvCacheKeyType: cacheType,
    experimentalKvCacheValueType: cacheType,
    lora: { adapters: adapters.map(({ path, scale }) => ({ filePath: path, scale })) },
  })
}

function openProcessSnapshots({ folder, promptCacheBytes }: ProcessConfig): SnapshotStore {
  const snapshots = openSnapshotStore(folder, promptCacheBytes)
  process.once('exit', () => snapshots.close())
  return snapshots
}
