/** A model that writes: its context, and what makes answers with it. */
import type { Llama, LlamaContext, LlamaModel } from 'node-llama-cpp'
import type { ProcessConfig } from '../../ipc/protocol.ts'
import { OneByOne } from '../decoding/one-by-one.ts'
import { Scheduler } from '../decoding/scheduler.ts'
import { openSnapshots, type Snapshots } from '../kv-cache/snapshots.ts'
import type { Progress, Use } from '../model.ts'
import { calibrate, threadCandidates, unknownStepMs } from '../resources/calibrate.ts'
import type { Plan } from '../resources/memory.ts'
import type { openDecoder } from './addon-decoder.ts'
import { grammarCompiler } from './compiled-grammars.ts'
import { cacheTypesOf, type Library } from './library.ts'
import { toTokenBias } from './token-bias.ts'

interface Loaded {
  readonly library: Library
  readonly llama: Llama
  readonly model: LlamaModel
  readonly plan: Plan
}

/** @param open the way to the library's inside; where it leads nowhere, answers are made one after the other */
export async function openWriter(
  { library, llama, model, plan }: Loaded,
  config: ProcessConfig,
  progress: Progress,
  open: typeof openDecoder,
): Promise<Use> {
  const context = await createContext(library, model, plan, config)
  const common = { grammar: grammarCompiler(library, llama, model), reading: undefined }
  const decoder = open(llama, model, context, plan)
  if (!decoder)
    return {
      ...common,
      parallel: 1,
      stepMs: unknownStepMs,
      runner: new OneByOne(
        context.getSequence(),
        (pairs) => toTokenBias(library, model, pairs),
        plan.chunkSize,
        progress,
      ),
      limitThreads() {},
    }
  const { threads, tuneThreads } = config
  const best = await calibrate(decoder, tuneThreads ? threadCandidates(threads) : [threads])
  const limitThreads = (most: number): void =>
    decoder.setThreads(Math.min(best.threads, most), Math.min(threads, most))
  limitThreads(threads)
  return {
    ...common,
    parallel: plan.parallel,
    stepMs: best.stepMs,
    runner: new Scheduler({ ...decoder, chunkSize: best.chunkSize }, progress, snapshotsIn(config)),
    limitThreads,
  }
}

function createContext(
  library: Library,
  model: LlamaModel,
  { contextSize, parallel, batchSize, flashAttention, kvCacheType }: Plan,
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

function snapshotsIn({ folder, promptCacheBytes }: ProcessConfig): Snapshots {
  const snapshots = openSnapshots(folder, promptCacheBytes)
  process.once('exit', () => snapshots.close())
  return snapshots
}
