import { readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { resolveFrom } from '../../../util/package-file.ts'

const libraryName = 'node-llama-cpp'

/**
 * Returns the version of node-llama-cpp that model processes load, or an empty string if it is not installed.
 * Reads its manifest only, since its native code never runs in the app.
 * @param processFile entry file of model processes
 */
export function readLibraryVersion(processFile: string): string {
  const folder = findLibraryFolder(processFile)
  return folder === undefined ? '' : String(readManifest(folder).version)
}

/**
 * Returns the folder of node-llama-cpp, or `undefined` if it is not installed.
 * @param processFile entry file of model processes
 */
export function findLibraryFolder(processFile: string): string | undefined {
  try {
    let folder = dirname(resolveFrom(resolve(processFile), libraryName))
    for (; folder !== dirname(folder); folder = dirname(folder))
      if (readManifest(folder).name === libraryName) return folder
  } catch {} // Not installed. The model process reports this.
  return undefined
}

function readManifest(folder: string): { readonly name?: unknown; readonly version?: unknown } {
  try {
    return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  } catch {
    return {}
  }
}
