/** Renders chat templates in llama.cpp's native code. A bad template can end the process. */
import { rendererOf } from './addon.ts'
import { importLibrary, startLibrary } from './library.ts'

/** Uses no model and no GPU. Returns `undefined` if this version of node-llama-cpp has no renderer. */
export async function openNativeTemplates(): Promise<
  ((source: string, variables: object) => string) | undefined
> {
  const llama = await startLibrary(await importLibrary(), { dryRun: true, vramPadding: 0 })
  const Renderer = rendererOf(llama)
  return Renderer && ((source, variables) => new Renderer(source).render(variables))
}
