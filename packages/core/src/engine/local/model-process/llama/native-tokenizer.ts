import type { Token } from 'node-llama-cpp'
import { importLibrary, startLibrary } from './library.ts'

/** Opens the tokenizer of a model file, without the weights. */
export async function openNativeTokenizer(
  modelPath: string,
): Promise<(text: string, parseSpecial: boolean) => readonly Token[]> {
  // A graphics card would reserve memory. Only on macOS, no build works without one.
  const gpu = process.platform === 'darwin' ? 'auto' : false
  const llama = await startLibrary(await importLibrary(), { gpu, maxThreads: 1, vramPadding: 0 })
  const model = await llama.loadModel({
    modelPath,
    vocabOnly: true,
    gpuLayers: 0,
    ignoreMemorySafetyChecks: true,
  })
  return (text, parseSpecial) => model.tokenize(text, parseSpecial)
}
