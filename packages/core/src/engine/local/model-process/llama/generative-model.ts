/** Opens a generative model: its context, decoder and scheduler. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Llama, LlamaContext, LlamaModel } from 'node-llama-cpp'
import type { ProcessConfig } from '../../ipc/process-config.ts'
import type { Decoder } from '../decoding/decoder.ts'
import { Scheduler } from '../decoding/scheduler.ts'
import { SequentialRunner } from '../decoding/sequential-runner.ts'
import { openSnapshotStore } from '../kv-cache/open-snapshots.ts'
import type { SnapshotStore } from '../kv-cache/snapshots.ts'
import { measureStateSize } from '../kv-cache/state-size.ts'
import type { ModelBackend, StepCounter } from '../model.ts'
import { calibrate, defaultStepMs, listThreadCandidates } from '../resources/calibrate.ts'
import type { LoadPlan } from '../resources/load-plan.ts'
import type { Turns } from '../workers/turns.ts'
import type { openDecoder } from './addon-decoder.ts'
import { createGrammarCompiler } from './compiled-grammars.ts'
import { cacheTypesOf, type LlamaLibrary } from './library.ts'
import { toTokenBias } from './token-bias.ts'

interface LlamaModelHandles {
  readonly library: LlamaLibrary
  readonly llama: Llama
  readonly model: LlamaModel
  readonly plan: LoadPlan
  readonly turns: Turns
}

/**
 * @param open opens the decoder. If it returns `undefined`, sequences are decoded one at a time
 * @param warn reports problems to the app's log
 */
export async function openGenerativeModel(
  { library, llama, model, plan, turns }: LlamaModelHandles,
  config: ProcessConfig,
  progress: StepCounter,
  open: typeof openDecoder,
  warn: (message: string) => void,
): Promise<ModelBackend> {
  const context = await createContext(library, model, plan, config)
  const compileGrammar = createGrammarCompiler(library, llama, model, turns)
  const common = { task: 'generate', compileGrammar, pooling: undefined } as const
  const decoder = open(llama, model, context, plan)
  if (!decoder)
    return {
      ...common,
      parallel: 1,
      stepMs: defaultStepMs,
      runner: new SequentialRunner(
        context.getSequence(),
        {
          tokenBias: (pairs) => toTokenBias(library, model, pairs),
          textOf: (tokens) => model.detokenize(tokens, true),
        },
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
    runner: new Scheduler(decoder, progress, await openProcessSnapshots(decoder, config, progress, warn)),
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

async function openProcessSnapshots(
  decoder: Decoder,
  { folder, promptCacheBytes, modelName }: ProcessConfig,
  progress: StepCounter,
  warn: (message: string) => void,
): Promise<SnapshotStore> {
  const file = join(folder, 'state-size')
  const sizeOf = await measureStateSize(decoder, file)
  rmSync(file, { force: true })
  const snapshots = openSnapshotStore(folder, promptCacheBytes, {
    sizeOf,
    onProgress: () => progress.steps++,
    onWriteFailure: ({ folder, freeBytes }) =>
      warn(
        `The prompt cache of the model "${modelName}" could not write to ${folder}, where ${Math.round(freeBytes / 1e6)} MB are free. Until it can, prompts that are not in a slot are evaluated again.`,
      ),
  })
  process.once('exit', () => snapshots.close())
  return snapshots
}
