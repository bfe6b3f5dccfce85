/**
 * The API by which one app with Modelmount calls the engines of another, without loss: paths, and the lines of responses. A request
 * of the engine contract is the body. Once the request is accepted, the response is a stream of JSON lines with status 200, and
 * empty lines are heartbeats.
 */
import { z } from 'zod'
import type { GenerateEvent, LoadProgress } from '../events.ts'
import { EventSchema } from './event-schema.ts'
import { WireError } from './wire-error.ts'

/** The version is that of the API. Another version has another path. */
const base = '/modelmount/v1'
export const paths = {
  generate: `${base}/generate`,
  countTokens: `${base}/count-tokens`,
  countCachedTokens: `${base}/count-cached-tokens`,
  render: `${base}/render`,
  embed: `${base}/embed`,
  rerank: `${base}/rerank`,
  tokenize: `${base}/tokenize`,
  detokenize: `${base}/detokenize`,
  tokenPieces: `${base}/token-pieces`,
  load: `${base}/load`,
  unload: `${base}/unload`,
  deletePromptStates: `${base}/delete-prompt-states`,
  models: `${base}/models`,
} as const

/** Items of a list, or characters of a text, in one line: a line stays below a megabyte with vectors of up to 8,192 numbers. */
export const partSizes = { vectors: 16, items: 8_192, characters: 65_536 } as const

const LoadEvent = z.object({
  type: z.literal('progress'),
  phase: z.literal('load'),
  fraction: z.number().min(0).max(1),
})

/** A line of a response. The last one is a `result`, an `error`, or the event `end`. */
export type WireLine =
  | { readonly event: GenerateEvent | ({ readonly type: 'progress' } & LoadProgress) }
  /** Tokens of an input that the model has evaluated. */
  | { readonly inputTokens: number }
  /** The next piece of a text, or the next items of a list. */
  | { readonly part: string | readonly unknown[] }
  | { readonly result: number | null | Readonly<Record<string, number>> }
  | { readonly error: WireError }

const LineSchema: z.ZodType<unknown> = z.union([
  z.object({ event: z.union([EventSchema, LoadEvent]) }),
  z.object({ inputTokens: z.int().min(0) }),
  z.object({ part: z.union([z.string(), z.array(z.unknown())]) }),
  z.object({ error: WireError }),
  z.object({ result: z.union([z.number(), z.null(), z.record(z.string(), z.number())]) }),
])

/** Returns undefined for a line that is none of these. */
export function parseLine(value: unknown): WireLine | undefined {
  const { success, data } = LineSchema.safeParse(value)
  return success ? (data as WireLine) : undefined
}
