/** The only file that loads node-llama-cpp. Other files import only its types. */
import type { Llama, LlamaOptions } from 'node-llama-cpp'
import { LlmError } from '../../../../errors.ts'
import { missingLibraryMessage } from '../../ipc/missing-engine.ts'

export type LlamaLibrary = typeof import('node-llama-cpp')

/** Throws an `LlmError` `upstream` with the install command if node-llama-cpp is not installed. */
export async function importLibrary(): Promise<LlamaLibrary> {
  try {
    return await import('node-llama-cpp')
  } catch (cause) {
    throw new LlmError('upstream', missingLibraryMessage, {}, { cause })
  }
}

/** Starts llama.cpp. Never compiles or downloads a build, since this runs on the server of the user. */
export const startLibrary = (
  { getLlama, LlamaLogLevel }: LlamaLibrary,
  options: Pick<LlamaOptions, 'gpu' | 'maxThreads' | 'dryRun' | 'vramPadding'>,
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
