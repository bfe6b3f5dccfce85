/** Chat templates filled by the library's native code. A bad one ends the process. */
import { rendererOf } from './addon.ts'
import { importLibrary, startLibrary } from './library.ts'

/** Without a model, and with nothing on a graphics card. Nothing where the library has no such code. */
export async function openNativeTemplates(): Promise<
  ((source: string, variables: object) => string) | undefined
> {
  const llama = await startLibrary(await importLibrary(), { dryRun: true, vramPadding: 0 })
  const Renderer = rendererOf(llama)
  return Renderer && ((source, variables) => new Renderer(source).render(variables))
}
