/** Builds llama-server of the llama.cpp release in node-llama-cpp. Needs CMake, a C++ compiler and Git. */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { checkOut, library } from '../templates/release.mjs'

export interface LlamaServer {
  readonly executable: string
  /** llama.cpp's source tree, with the server's tests and the chat templates. */
  readonly sources: string
}

const paths = [
  ...['common', 'ggml/include', 'include', 'models/templates', 'src/llama-ext.h'],
  ...['tools/mtmd', 'tools/server', 'tools/ui', 'vendor'],
]

/**
 * Builds the server in the user's cache folder, or in the folder of the environment variable. A later run finds it
 * there. A build takes two minutes.
 */
export async function buildLlamaServer(): Promise<LlamaServer> {
  const info = readFileSync(join(library, 'llama/binariesGithubRelease.json'), 'utf8')
  const { release } = JSON.parse(info) as { readonly release: string }
  const caches = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache')
  const folder = process.env.MODELMOUNT_LLAMA_SERVER ?? join(caches, 'modelmount', `llama-server-${release}`)
  if (!existsSync(folder)) await build(folder)
  return { executable: join(folder, 'build/llama-server'), sources: join(folder, 'sources') }
}

async function build(folder: string): Promise<void> {
  await mkdir(dirname(folder), { recursive: true })
  // Only a complete build gets the final name.
  const partial = await mkdtemp(`${folder}-`)
  try {
    const [sources, output] = [join(partial, 'sources'), join(partial, 'build')]
    await mkdir(sources)
    checkOut(sources, paths)
    const platform = `${process.platform}-${process.arch}`.replace('darwin', 'mac').replace('win32', 'win')
    const binaries = join(dirname(library), `@node-llama-cpp/${platform}/bins/${platform}`)
    const run = promisify(execFile)
    const script = fileURLToPath(new URL('.', import.meta.url))
    await run('cmake', ['-S', script, '-B', output, `-DSOURCES=${sources}`, `-DBINARIES=${binaries}`])
    await run('cmake', ['--build', output, '--parallel', '2'])
    await rename(partial, folder)
  } catch (error) {
    await rm(partial, { recursive: true, force: true })
    throw error
  }
}
