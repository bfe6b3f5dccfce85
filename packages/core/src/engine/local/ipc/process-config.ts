/** Configuration with which an app starts a model process, and the record that the process publishes. */
import { z } from 'zod'
import { limits } from '../../request-limits.ts'

/**
 * Raised with every incompatible change of messages or records. Apps with different protocol versions do not
 * share processes.
 */
export const protocolVersion = 10

/** The model to load, and its load settings. */
export const LoadConfig = z.object({
  modelPath: z.string(),
  modelName: z.string(),
  /** Identifies the weights and load settings. Responses contain it. */
  fingerprint: z.string(),
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
  /** Runtime directory, which contains the socket and the record. */
  runtimeDir: z.string(),
  /** File name of the socket and of the record, without the extension. */
  name: z.string(),
  /** Private folder of the process. Removed at exit. */
  folder: z.string(),
})
export type ProcessConfig = z.output<typeof ProcessConfig>

/** Record file that a model process writes beside its socket. */
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
})
export type ProcessRecord = z.output<typeof ProcessRecord>

/** Exit code of a process that finds its name in use by another process. */
export const nameTakenExitCode = 10
