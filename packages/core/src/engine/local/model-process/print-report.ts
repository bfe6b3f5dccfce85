/** Prints what this process finds on the machine: two lines of JSON, memory and engine. */
import type { ReportedEngine, ReportedMemory } from '../ipc/machine-report.ts'
import { describeMissingBuild } from '../ipc/missing-engine.ts'
import { describeRamDisk } from './kv-cache/open-snapshots.ts'
import { importLibrary, startLibrary } from './llama/library.ts'
import { readMachineMemory } from './resources/machine-memory.ts'

export async function printReport(): Promise<void> {
  const { free, total } = readMachineMemory()
  printLine({ freeBytes: free, totalBytes: total, ramDisk: describeRamDisk() } satisfies ReportedMemory)
  printLine(await describeEngine())
}

const printLine = (value: object): boolean => process.stdout.write(`${JSON.stringify(value)}\n`)

async function describeEngine(): Promise<ReportedEngine> {
  try {
    const library = await importLibrary()
    try {
      const llama = await startLibrary(library, {})
      const { free, total } = await llama.getVramState()
      return {
        llamaCpp: llama.llamaCppRelease.release,
        gpu: llama.gpu,
        cards: await llama.getGpuDeviceNames(),
        freeVramBytes: free,
        totalVramBytes: total,
        cpuFeatures: featuresIn(llama.systemInfo),
      }
    } catch (error) {
      if (!(error instanceof library.NoBinaryFoundError)) throw error
      return { problem: describeMissingBuild(await library.getModuleVersion()) }
    }
  } catch (error) {
    return { problem: (error as Error).message }
  }
}

/** @param systemInfo llama.cpp's list, such as `CPU : SSE3 = 1 | AVX2 = 1 | LLAMAFILE = 1 | ` */
const featuresIn = (systemInfo: string): readonly string[] =>
  Array.from(systemInfo.matchAll(/(\w+) = 1\b/g), ([, name = '']) => name)
