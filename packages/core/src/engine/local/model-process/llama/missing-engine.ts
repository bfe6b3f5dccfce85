/** Explains why the engine is missing on this machine, and names the command that installs it. */
import { createRequire } from 'node:module'

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

export interface Machine {
  /** Platform and architecture of Node.js, such as `linux-x64`. */
  readonly name: string
  readonly isMusl: boolean
  /** Whether an empty package replaces the build, as in a clone of this repository. */
  readonly isStubbed: (build: string) => boolean
}

export const missingLibraryMessage =
  'The engine is not installed. Install it with: npm install node-llama-cpp@3.22.1'

/** @param version version of node-llama-cpp. The build must have the same version */
export function describeMissingBuild(version: string, machine: Machine = detectMachine()): string {
  const build = builds[machine.name]
  if (!build) return `There is no prebuilt engine for ${machine.name}.`
  if (machine.isMusl)
    return 'There is no prebuilt engine for musl, as in Alpine Linux. Use an image with glibc, such as node:22-slim.'
  return machine.isStubbed(build)
    ? `This clone leaves out the engine for ${machine.name}. Add it with: npm run add-engine`
    : `The engine for ${machine.name} is not installed. Install it with: npm install @node-llama-cpp/${build}@${version}`
}

function detectMachine(): Machine {
  const report = process.report.getReport() as { header: { glibcVersionRuntime?: string } }
  return {
    name: `${process.platform}-${process.arch}`,
    isMusl: process.platform === 'linux' && !report.header.glibcVersionRuntime,
    isStubbed: (build) => {
      try {
        const { name } = createRequire(import.meta.url)(`@node-llama-cpp/${build}/package.json`)
        return name !== `@node-llama-cpp/${build}`
      } catch {
        return false
      }
    },
  }
}
