/** What a model process finds on this machine. It prints this, instead of serving a model, when it is asked to. */

/** The only argument of a model process that prints a report. */
export const reportArgument = '--report'

/** Memory, as the model process counts it. Printed first, since the native code can crash. */
export interface ReportedMemory {
  /** Free memory in bytes, within the limit of the container. The page cache counts as free. */
  readonly freeBytes: number
  /** Memory of the machine, or the limit of the container if that is less. */
  readonly totalBytes: number
  readonly ramDisk: RamDisk
}

/** The RAM disk for cached prompts. */
export interface RamDisk {
  /** Path of the folder, such as `/dev/shm`. */
  readonly path: string
  /** Free space, in bytes. */
  readonly freeBytes: number
  /** Free space from which on cached prompts are stored on the RAM disk. */
  readonly requiredBytes: number
}

/** The native code of node-llama-cpp, or the reason why it does not run. */
export type ReportedEngine = RunningEngine | MissingEngine

/** The native code of node-llama-cpp, which was started. */
export interface RunningEngine {
  /** Release of llama.cpp, such as `v0.5.0`. */
  readonly llamaCpp: string
  /** API of the graphics cards: `cuda`, `vulkan` or `metal`. False on the CPU. */
  readonly gpu: 'cuda' | 'vulkan' | 'metal' | false
  /** Names of the graphics cards. Empty on the CPU. */
  readonly cards: readonly string[]
  /** Free memory of all graphics cards together, in bytes. */
  readonly freeVramBytes: number
  /** Memory of all graphics cards together, in bytes. */
  readonly totalVramBytes: number
  /** Instruction sets of the CPU that this build uses, such as `AVX2`. */
  readonly cpuFeatures: readonly string[]
}

/** Why the native code cannot be used. */
export interface MissingEngine {
  /** The reason and the command that installs the engine, for people. */
  readonly problem: string
}
