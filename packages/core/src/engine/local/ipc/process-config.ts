/** How an app starts a model process, and the record that the process publishes. */
import { z } from 'zod'
import { limits } from '../../request-limits.ts'

/** Raised with every incompatible change of messages or records. Apps with different versions do not share processes. */
export const protocolVersion = 9

/** What to load, and how. */
export const LoadConfig = z.object({
  modelPath: z.string(),
  modelName: z.string(),
  /** Identifies weights and settings in responses. */
  fingerprint: z.string(),
  threads: z.int().min(1),
  /** Whether to use fewer threads where decoding is faster with fewer. */
  tuneThreads: z.boolean(),
  /** Upper bound; a model that was trained for less gets less. */
  contextSize: z.int().min(1).max(limits.context),
  /** Sequences decoded in one batch, as far as memory allows. */
  parallel: z.int().min(1).max(256),
  gpuLayers: z.union([z.int().min(0), z.enum(['auto', 'max'])]),
  /** Absent: used where model and machine support it. */
  flashAttention: z.boolean().optional(),
  /** The types that llama.cpp does not crash with. */
  kvCacheType: z.enum(['f16', 'q8_0', 'q4_0']),
  /** Upper bound of the prompt cache; absent: the free memory decides. */
  promptCacheBytes: z.int().min(0).optional(),
  /** LoRA adapters, applied to every call. */
  adapters: z
    .array(z.object({ path: z.string(), scale: z.number(), sizeBytes: z.number().min(0) }))
    .optional(),
})
export type LoadConfig = z.output<typeof LoadConfig>

/** The one argument of a model process, as JSON. */
export const ProcessConfig = LoadConfig.extend({
  /** The folder with its socket and record, and their name. */
  runtimeDir: z.string(),
  name: z.string(),
  /** Private folder; removed at exit. */
  folder: z.string(),
})
export type ProcessConfig = z.output<typeof ProcessConfig>

/** The file that a process writes beside its socket. */
export const ProcessRecord = z.object({
  processId: z.int().min(1),
  /** PID namespace: in another one the same id means another process. */
  namespace: z.string(),
  folder: z.string(),
  /** `waiting`: for memory that other processes hold. */
  state: z.enum(['waiting', 'loading', 'idle', 'busy']),
  /** Last change of `state`, in milliseconds since 1970. */
  since: z.number(),
  /** Memory that the operating system may still report as free: mapped weights that every step reads. */
  reservedBytes: z.number().min(0),
  /** Memory that becomes free when the process exits. Absent in records of the first protocol version. */
  sizeBytes: z.number().min(0).default(0),
})
export type ProcessRecord = z.output<typeof ProcessRecord>

/** Exit code of a process whose name another process holds. */
export const nameTakenExitCode = 10
