/** Configuration with which an app starts a model process, and the record that the process publishes. */
import { z } from 'zod'
import { limits } from '../../request-limits.ts'

/**
 * Version of this package, as in `package.json`. Apps with different versions do not share processes. A constant,
 * since the file may belong to a newer version than the code that runs.
 */
export const packageVersion = '0.1.0'

/**
 * Raised with every incompatible change of messages. Apps with different protocol versions do not share
 * processes.
 */
export const protocolVersion = 13

const CardSelection = z.record(z.string(), z.string())

/** The model to load, and its load settings. */
export const LoadConfig = z.object({
  modelPath: z.string(),
  modelName: z.string(),
  /** Identifies the weights and load settings. Responses contain it. */
  fingerprint: z.string(),
  /** Version of node-llama-cpp when the app started. */
  libraryVersion: z.string(),
  /** Graphics cards that the model may use, see `CardSelection`. */
  cards: CardSelection,
  threads: z.int().min(1),
  /** Whether calibration may choose fewer threads, if decoding is faster with fewer. */
  tuneThreads: z.boolean(),
  /** Upper bound in tokens. A model that was trained for a smaller context gets that context. */
  contextSize: z.int().min(1).max(limits.context),
  /** Maximum number of sequences in one batch. With little memory, the model process uses fewer. */
  parallel: z.int().min(1).max(256),
  gpuLayers: z.union([z.int().min(0), z.enum(['auto', 'max'])]),
  /** If absent, flash attention is on where the model and the machine support it. */
  flashAttention: z.boolean().optional(),
  /** Only KV cache data types that do not crash llama.cpp. */
  kvCacheType: z.enum(['f16', 'q8_0', 'q4_0']),
  /** Maximum size of all saved KV states. The free space may limit it further. @default 1 GiB */
  promptCacheBytes: z.int().min(0).optional(),
  /** LoRA adapters, applied to every call. */
  adapters: z
    .array(z.object({ path: z.string(), scale: z.number(), sizeBytes: z.number().min(0) }))
    .optional(),
})
export type LoadConfig = z.output<typeof LoadConfig>

/** Configuration of a model process, passed as JSON in its only argument. */
export const ProcessConfig = LoadConfig.extend({
  /** Version of the package that the app runs. The files on the disk may be newer. */
  packageVersion: z.string(),
  /** Runtime directory, which contains the socket and the record. */
  runtimeDir: z.string(),
  /** File name of the socket and of the record, without the extension. */
  name: z.string(),
  /** Private folder of the process. Removed at exit. */
  folder: z.string(),
})
export type ProcessConfig = z.output<typeof ProcessConfig>

/**
 * Record file that a model process writes beside its socket. Processes of all versions read it, since they share
 * the memory of the machine. So fields are only added, and each later field has a default.
 */
export const ProcessRecord = z.object({
  processId: z.int().min(1),
  /** PID namespace of `processId`. In another namespace, the same id means another process. */
  namespace: z.string(),
  folder: z.string(),
  /** `waiting`: the load waits for memory of other processes. */
  state: z.enum(['waiting', 'loading', 'idle', 'busy']),
  /** Time of the last change of `state`, in milliseconds since 1970. */
  since: z.number(),
  /**
   * Memory in bytes that belongs to this process although the operating system may report it as free. During
   * the load, this is the reservation. After the load, it is the size of the mapped weights.
   */
  reservedBytes: z.number().min(0),
  /**
   * Memory in bytes that becomes free when the process exits. Absent in records of the first protocol
   * version.
   */
  sizeBytes: z.number().min(0).default(0),
  /** Memory in bytes on graphics cards that the load still allocates or has allocated. 0 after the load. */
  reservedVramBytes: z.number().min(0).default(0),
  /** Memory in bytes on graphics cards that becomes free when the process exits. */
  vramBytes: z.number().min(0).default(0),
  /** Graphics cards that the process may use. */
  cards: CardSelection.default({}),
})
export type ProcessRecord = z.output<typeof ProcessRecord>

/** Exit code of a process that finds its name in use by another process. */
export const nameTakenExitCode = 10
/** Exit code of a process whose files, or those of node-llama-cpp, have another version than when its app started. */
export const otherVersionExitCode = 11
/** Exit code of a process that cannot write to the runtime folder, because its disk is full. */
export const diskFullExitCode = 12
