/** A model that reads, and does not write. */
import type { LlamaModel } from 'node-llama-cpp'
import { LlmError } from '../../../../errors.ts'
import type { ProcessConfig } from '../../ipc/protocol.ts'
import type { Use } from '../model.ts'
import type { Purpose } from '../model-kind.ts'
import { unknownStepMs } from '../resources/calibrate.ts'
import type { Plan } from '../resources/memory.ts'
import { openReading } from './pooling-contexts.ts'

/** Throws `upstream` where it is to have adapters. */
export async function openReader(
  model: LlamaModel,
  { contextSize, parallel }: Plan,
  { modelName, adapters = [] }: ProcessConfig,
  purpose: Exclude<Purpose, 'text'>,
): Promise<Use> {
  if (adapters.length > 0) throw notAdaptable(modelName)
  const reading = purpose === 'nothing' ? undefined : await openReading(model, purpose, contextSize, parallel)
  return {
    parallel,
    stepMs: reading?.stepMs ?? unknownStepMs,
    runner: {
      run: () => Promise.reject(notForChat(modelName)),
      wake: () => {},
      rest: async () => reading?.pool.rest(),
    },
    grammar: () => Promise.reject(notForChat(modelName)),
    reading,
    limitThreads: (most) => reading?.pool.limit(most),
  }
}

const notAdaptable = (name: string): LlmError =>
  new LlmError(
    'upstream',
    `The model "${name}" reads texts, and cannot have adapters: they are for models that write.`,
  )

const notForChat = (name: string): LlmError =>
  new LlmError('invalid_request', `The model "${name}" reads texts, and cannot chat.`, { param: 'model' })
