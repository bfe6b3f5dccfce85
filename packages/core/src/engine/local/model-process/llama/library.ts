/** The only file that loads node-llama-cpp; the others know its types. */
import type { Llama, LlamaOptions } from 'node-llama-cpp'
import { LlmError } from '../../../../errors.ts'
import { missingLibraryMessage } from './missing-engine.ts'

export type LlamaLibrary = typeof import('node-llama-cpp')

/** Throws `upstream`, with the command that installs it. */
export async function importLibrary(): Promise<LlamaLibrary> {
  try {
    return await import('node-llama-cpp')
  } catch (cause) {
    throw new LlmError('upstream', missingLibraryMessage, {}, { cause })
  }
}

/** Never compiles or downloads anything: it runs in the user's server. */
export const startLibrary = (
  { getLlama, LlamaLogLevel }: LlamaLibrary,
  options: Pick<LlamaOptions, 'maxThreads' | 'dryRun' | 'vramPadding'>,
): Promise<Llama> =>
  getLlama({
    build: 'never',
    skipDownload: true,
    progressLogs: false,
    logLevel: LlamaLogLevel.error,
    ...options,
  })

/** KV cache data types by their option names. */
export const cacheTypesOf = ({ GgmlType: { F16, Q8_0, Q4_0 } }: LlamaLibrary) => ({
  f16: F16,
  q8_0: Q8_0,
  q4_0: Q4_0,
})
