/** Explains why no engine runs on this machine, and names the way out. Loads no native code unless it is asked to. */
import { existsSync, readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { findPackageFile, resolveFrom } from '../../../util/package-file.ts'
import { readProcessReport } from '../../../util/process-report.ts'
import { findLibraryFolder, readLibraryVersion } from './library-version.ts'

/** Names of the npm packages with a prebuilt engine, by platform and architecture of Node.js. */
const builds: Readonly<Record<string, string>> = {
  'linux-x64': 'linux-x64',
  'linux-arm64': 'linux-arm64',
  'linux-arm': 'linux-armv7l',
  'linux-riscv64': 'linux-riscv64',
  'darwin-arm64': 'mac-arm64-metal',
  'darwin-x64': 'mac-x64',
  'win32-x64': 'win-x64',
  'win32-arm64': 'win-arm64',
}

const ownProcess = '@modelmount/core/model-process'

/** Oldest glibc with all symbols that the builds of node-llama-cpp 3.22.1 for x64 and arm64 need. */
const minGlibc = '2.34'

/** What decides whether a prebuilt engine runs. */
export interface EnginePlatform {
  /** Platform and architecture of Node.js, such as `linux-x64`. */
  readonly name: string
  /** Version of glibc, such as `2.36`. Undefined for musl, and outside Linux. */
  readonly glibc: string | undefined
  /** What is installed for a build. An empty package replaces most builds in a clone of this repository. */
  readonly findBuild: (build: string) => 'build' | 'empty package' | undefined
}

export const missingLibraryMessage =
  'The engine is not installed. Install it with: npm install node-llama-cpp@3.22.1'

/**
 * Why the engine cannot run here, as far as that shows without its native code. Undefined if it probably can, or if the
 * user has compiled a build.
 * @param processFile entry file of model processes
 */
export function findEngineProblem(processFile: string): string | undefined {
  const library = findLibraryFolder(processFile)
  // A file of the user may load the model process from a folder that has the library.
  if (library === undefined)
    return processFile === findPackageFile(ownProcess) ? missingLibraryMessage : undefined
  if (hasLocalBuild(library)) return undefined
  return findPlatformProblem(readLibraryVersion(processFile), detectPlatform(library))
}

/**
 * Why node-llama-cpp finds no build that starts.
 * @param version version of node-llama-cpp. The build must have the same version
 */
export function describeMissingBuild(version: string, processFile = process.argv[1] ?? ''): string {
  const library = findLibraryFolder(processFile)
  if (library && hasLocalBuild(library)) return brokenLocalBuildMessage
  const platform = detectPlatform(library)
  return (
    findPlatformProblem(version, platform) ??
    describeBrokenBuild(platform.name, readLoadError(library, platform.name))
  )
}

const brokenLocalBuildMessage =
  'The engine that was built on this machine does not load. Build it again with: npx node-llama-cpp source download'

/** @param version version of node-llama-cpp */
export function findPlatformProblem(
  version: string,
  { name, glibc, findBuild }: EnginePlatform,
): string | undefined {
  const build = builds[name]
  if (!build)
    return `There is no prebuilt engine for ${name}. Let the models run on another machine, with upstreamEngine() of @modelmount/core/upstream.`
  if (name.startsWith('linux-') && glibc === undefined)
    return 'There is no prebuilt engine for musl, as in Alpine Linux. Use an image with glibc, such as node:22-slim.'
  if (glibc !== undefined && isOlder(glibc, minGlibc))
    return `The prebuilt engine for ${name} needs glibc ${minGlibc} or later, but this system has ${glibc}. Use a newer system or image, such as node:22-slim.`
  const found = findBuild(build)
  if (found === 'build') return undefined
  return found === 'empty package'
    ? `This clone leaves out the engine for ${name}. Add it with: npm run add-engine`
    : `The engine for ${name} is not installed. Install it with: npm install @node-llama-cpp/${build}@${version}`
}

/** @param reason what the system says, such as `libstdc++.so.6: cannot open shared object file` */
export const describeBrokenBuild = (name: string, reason: string | undefined): string =>
  `The engine for ${name} is installed, but its native code does not load${
    reason === undefined ? '' : `: ${reason}`
  }. Install the system libraries that it needs, or use an image that has them, such as node:22-slim.`

/** @param library folder of node-llama-cpp */
function detectPlatform(library: string | undefined): EnginePlatform {
  return {
    name: `${process.platform}-${process.arch}`,
    glibc: process.platform === 'linux' ? readProcessReport().header.glibcVersionRuntime : undefined,
    findBuild: (build) => {
      const folder = findBuildFolder(library, build)
      if (folder === undefined) return undefined
      return existsSync(addonIn(folder, build)) ? 'build' : 'empty package'
    },
  }
}

/** Builds are dependencies of node-llama-cpp. With pnpm, only node-llama-cpp itself finds them. */
function findBuildFolder(library: string | undefined, build: string): string | undefined {
  if (library === undefined) return undefined
  try {
    let folder = dirname(resolveFrom(join(library, 'package.json'), `@node-llama-cpp/${build}`))
    while (!existsSync(join(folder, 'package.json')) && folder !== dirname(folder)) folder = dirname(folder)
    return folder
  } catch {
    return undefined
  }
}

const addonIn = (folder: string, build: string): string => join(folder, 'bins', build, 'llama-addon.node')

/** Loads the native code of a build, which also the tests of node-llama-cpp could not do. Returns the error. */
function readLoadError(library: string | undefined, name: string): string | undefined {
  const build = builds[name] ?? ''
  try {
    createRequire(import.meta.url)(addonIn(findBuildFolder(library, build) ?? '', build))
    return undefined
  } catch (error) {
    // Clients may see the message, but no paths.
    return (error as Error).message.split('\n')[0]?.replaceAll(/(?:[A-Za-z]:)?[\\/][^\s:]*[\\/]/g, '')
  }
}

function hasLocalBuild(library: string): boolean {
  const folder = join(library, 'llama', 'localBuilds')
  return existsSync(folder) && readdirSync(folder).length > 0
}

function isOlder(version: string, least: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [leastMajor = 0, leastMinor = 0] = least.split('.').map(Number)
  return major < leastMajor || (major === leastMajor && minor < leastMinor)
}
