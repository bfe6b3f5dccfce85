/** The file of recorded calls: its format, and how it is read and written. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { z } from 'zod'
import { renameOverSync } from '../../util/files/rename-over.ts'
import { engineMethods } from './recorded-call.ts'

const recordSchema = z.record(z.string(), z.unknown())

const recordingSchema = z.strictObject({
  method: z.enum(engineMethods),
  request: recordSchema,
  /** Events of `generate`. The `end` event has no timings. */
  events: z.array(z.looseObject({ type: z.string() })).optional(),
  /** Result of any other method that has one, without durations. */
  result: z.unknown().optional(),
  /** Tokens that `embed` or `rerank` has evaluated before its error. */
  inputTokens: z.number().optional(),
  error: z
    .strictObject({ code: z.string(), message: z.string(), details: recordSchema.optional() })
    .optional(),
})

const modelSchema = z.strictObject({
  /** Name in the store, such as `tiny:latest`. */
  name: z.string(),
  contextSize: z.number().optional(),
  /** Whether recorded requests have images. */
  seesImages: z.boolean().optional(),
  /** Modelfile defaults, without the license. */
  defaults: z
    .strictObject({
      template: z.string().exactOptional(),
      system: z.string().exactOptional(),
      parameters: recordSchema,
      messages: z.array(z.strictObject({ role: z.string(), content: z.string() })).readonly(),
      license: z.array(z.string()).readonly(),
    })
    .optional(),
  config: recordSchema.optional(),
  /** What the Ollama API reads of the GGUF file. */
  details: z
    .strictObject({ architecture: z.string(), capabilities: z.array(z.string()).readonly() })
    .optional(),
})

const fileSchema = z.strictObject({
  version: z.literal(1),
  /** Models by their name in requests. */
  models: z.record(z.string(), modelSchema),
  recordings: z.array(recordingSchema),
})

export type Recording = z.output<typeof recordingSchema>
export type RecordedModel = z.output<typeof modelSchema>
export type RecordingFile = z.output<typeof fileSchema>

/** Returns undefined if the file does not exist. Throws a `TypeError` if it is not a recording. */
export function readRecordingFile(path: string): RecordingFile | undefined {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw cause
  }
  const { data, error } = fileSchema.safeParse(parseJson(text, path))
  if (data) return data
  throw new TypeError(`${path}: not a recording of this version. Record it again.\n${z.prettifyError(error)}`)
}

/** Replaces the file atomically. Creates its folder. */
export function writeRecordingFile(path: string, file: RecordingFile): void {
  mkdirSync(dirname(path), { recursive: true })
  const temporary = `${path}.${process.pid}.tmp`
  writeFileSync(temporary, `${formatJson(file)}\n`)
  renameOverSync(temporary, path)
}

function parseJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new TypeError(`${path}: ${(cause as Error).message}`, { cause })
  }
}

/** Longest line with a whole object or list, in characters. */
const maxLineLength = 120

/** Formats JSON with one event, message or vector a line where it fits. */
function formatJson(value: unknown, indent = ''): string {
  const line = JSON.stringify(value)
  if (typeof value !== 'object' || value === null) return line
  const isList = Array.isArray(value)
  const isShort = indent !== '' && indent.length + line.length <= maxLineLength
  if (isShort || line.length === 2 || (isList && value.every((item) => typeof item === 'number'))) return line
  const inner = `${indent}  `
  const items = isList
    ? value.map((item) => inner + formatJson(item, inner))
    : Object.entries(value)
        .filter(([, item]) => item !== undefined)
        .map(([key, item]) => `${inner}${JSON.stringify(key)}: ${formatJson(item, inner)}`)
  return isList ? `[\n${items.join(',\n')}\n${indent}]` : `{\n${items.join(',\n')}\n${indent}}`
}
