/**
 * Request schemas. Unknown fields are ignored, and so are options that only affect speed. Fields that are not
 * implemented and would change the response are rejected, and the error names the field.
 * Shape: Ollama API reference. The schemas are named after the sections of the reference.
 */
import { z } from 'zod'
import { isBase64 } from '../../engine/is-base64.ts'
import { areTokens, limits } from '../../engine/request-limits.ts'
import { integer, ModelParameters } from '../../models/modelfile/parameters.ts'
import { isRecord } from '../../util/is-record.ts'
import { progressFields } from '../answer-progress.ts'
import { integerFrom, JsonObject, optional, truncateForError, unsupportedUnless } from '../fields.ts'
import { list } from '../parse.ts'
import { describeKeepAliveError, toKeepAlive } from './keep-alive.ts'

/** A struct as Go decodes it: field names ignore case, and the last duplicate counts. */
const struct = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z.preprocess((value) => foldKeys(value, shape), z.object(shape))

/** A body; `null` counts as an empty object. */
const body = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z.preprocess((value) => value ?? {}, struct(shape))

/** Copies known fields under their lower-case names. A hostile object may have a million other fields. */
function foldKeys(value: unknown, shape: z.ZodRawShape): unknown {
  if (!isRecord(value)) return value
  const fields: Record<string, unknown> = {}
  for (const [key, field] of Object.entries(value)) {
    const name = key.toLowerCase()
    if (Object.hasOwn(shape, name)) fields[name] = field
  }
  return fields
}

/** An object is a JSON Schema, which the grammar compiler checks. */
const Format = z.custom<'' | 'json' | object>(
  (value) => value === '' || value === 'json' || isRecord(value),
  {
    error: ({ input }) =>
      `invalid format: ${JSON.stringify(quoteForError(input))}; expected "json" or a valid JSON Schema object`,
  },
)
/** Quotes a value as JSON. Shortens texts and arrays. */
const quoteForError = (value: unknown): string =>
  Array.isArray(value) ? '[]' : JSON.stringify(typeof value === 'string' ? truncateForError(value) : value)

const levels = ['high', 'medium', 'low', 'max'] as const
const choices = '("high", "medium", "low", "max", true, or false)'
const Think = z.custom<boolean | (typeof levels)[number]>(
  (value) => typeof value === 'boolean' || levels.includes(value as (typeof levels)[number]),
  {
    error: ({ input }) =>
      typeof input === 'string'
        ? `invalid think value: ${JSON.stringify(truncateForError(input))} (must be ${choices.slice(1)}`
        : `think must be a boolean or string ${choices}`,
  },
)
const KeepAlive = z.unknown().transform((value, context) => {
  const keepAlive = toKeepAlive(value)
  if (keepAlive !== undefined) return keepAlive
  context.addIssue(describeKeepAliveError(value))
  return z.NEVER
})

/** Fields of `/api/generate` and `/api/chat`. */
const commonFields = {
  model: optional(z.string().max(limits.modelLength)),
  stream: optional(z.boolean()),
  options: optional(ModelParameters),
  keep_alive: optional(KeepAlive),
  think: optional(Think),
  truncate: optional(z.boolean()),
  // Ignored: an answer always ends when its context is full.
  shift: optional(z.boolean()),
  format: optional(Format),
  logprobs: optional(z.boolean()),
  // Ignored without `logprobs`.
  top_logprobs: optional(
    integerFrom(Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY).refine(
      (count) => count >= 0 && count <= 20,
      'top_logprobs must be between 0 and 20',
    ),
  ),
  _debug_render_only: optional(z.boolean()),
  // Extensions of llama.cpp's server.
  ...progressFields,
}

/** Their format and size are checked when the model of the call is known. */
const Images = optional(
  list(z.string(), { max: limits.images }).refine(
    (images) => images.every(isBase64),
    'Invalid image: expected the bytes of the image in Base64.',
  ),
)

export const OllamaGenerateRequest = body({
  ...commonFields,
  prompt: optional(z.string()),
  system: optional(z.string()),
  context: optional(
    z.custom<readonly number[]>(areTokens, { params: { expected: 'array' }, error: 'expected token ids.' }),
  ),
  raw: optional(z.boolean()),
  suffix: optional(z.string()),
  template: optional(z.string()),
  images: Images,
})
export type OllamaGenerateRequest = z.output<typeof OllamaGenerateRequest>

/** Any role is accepted, since some chat templates define further roles. An empty role becomes `user`. */
const Role = z
  .string()
  .max(limits.roleLength)
  .transform((role) => role.toLowerCase() || 'user')

/** Checks only the structure; the grammar compiler checks the rest. */
const ToolParameters = JsonObject.superRefine((schema, context) => {
  const { properties } = schema as { readonly properties?: unknown }
  if (!isRecord(properties ?? {}))
    context.addIssue({ code: 'custom', path: ['properties'], message: 'expected an object.' })
  const wrong = Object.entries(properties ?? {}).find(([, property]) => !isOfType(property?.type))
  if (wrong)
    context.addIssue({
      code: 'custom',
      path: ['properties', wrong[0], 'type'],
      message: 'expected the name of a type, or a list of them.',
    })
})
const isOfType = (type: unknown): boolean => [type ?? []].flat().every((name) => typeof name === 'string')
const ToolName = z.string().min(1).max(limits.toolNameLength)

const ToolCall = struct({
  id: optional(z.string()),
  function: struct({ name: ToolName, arguments: optional(JsonObject) }),
})

const OllamaMessage = struct({
  role: optional(Role),
  content: optional(z.string()),
  thinking: optional(z.string()),
  images: Images,
  tool_calls: optional(list(ToolCall, { max: limits.parts })),
  tool_name: optional(z.string()),
  tool_call_id: optional(z.string()),
})
export type OllamaMessage = z.output<typeof OllamaMessage>

const OllamaTool = struct({
  type: optional(z.string()),
  function: struct({
    name: ToolName,
    description: optional(z.string()),
    parameters: optional(ToolParameters),
  }),
})
export type OllamaTool = z.output<typeof OllamaTool>

export const ChatRequest = body({
  ...commonFields,
  messages: optional(list(OllamaMessage, { max: limits.messages })),
  tools: optional(list(OllamaTool, { max: limits.tools })),
})
export type ChatRequest = z.output<typeof ChatRequest>

/** Fields of both embedding routes. */
const embedFields = {
  model: commonFields.model,
  options: commonFields.options,
  keep_alive: commonFields.keep_alive,
}

const Inputs = z
  .custom<string | readonly string[]>(
    (value) => [value].flat().every((text) => typeof text === 'string'),
    'invalid input type',
  )
  .refine(
    (value) => !Array.isArray(value) || value.length <= limits.inputs,
    `invalid input: expected ${limits.inputs} texts at most.`,
  )

export const EmbedRequest = body({
  ...embedFields,
  input: optional(Inputs),
  truncate: optional(z.boolean()),
  dimensions: optional(integer()),
})

export const EmbeddingsRequest = body({ ...embedFields, prompt: optional(z.string()) })

/** Older clients send the deprecated field `name`. */
const nameFields = {
  model: optional(z.string().max(limits.modelLength)),
  name: optional(z.string().max(limits.modelLength)),
}
export const NamedRequest = body(nameFields)

export const ShowRequest = body({
  ...nameFields,
  system: optional(z.string()),
  verbose: optional(z.boolean()),
  // Ignored: the response shows the stored model.
  template: optional(z.string()),
  options: optional(z.looseObject({})),
})

export const CopyRequest = body({
  source: optional(z.string().max(limits.modelLength)),
  destination: optional(z.string().max(limits.modelLength)),
})

/** Body of pull and push. */
export const TransferRequest = body({
  ...nameFields,
  insecure: optional(z.boolean()),
  stream: optional(z.boolean()),
})

/** A custom check, since zod would report each of a million invalid fields in a hostile object. */
const Digests = z.custom<Readonly<Record<string, string>>>(
  (value) => isRecord(value) && Object.values(value).every((digest) => typeof digest === 'string'),
  { params: { expected: 'object' }, error: 'expected names of files with the digests of blobs.' },
)
const isEmptyText = (text: string): boolean => text === ''

export const CreateRequest = body({
  ...nameFields,
  stream: optional(z.boolean()),
  from: optional(z.string().max(limits.modelLength)),
  files: optional(Digests),
  adapters: optional(Digests),
  template: optional(z.string()),
  system: optional(z.string()),
  license: optional(z.union([z.string(), list(z.string(), { max: limits.parts })])),
  parameters: optional(JsonObject),
  messages: optional(
    list(struct({ role: z.string().max(limits.roleLength), content: z.string() }), { max: limits.messages }),
  ),
  quantize: optional(z.string()),
  // Deprecated name of `quantize`.
  quantization: optional(z.string()),
  renderer: optional(z.string()),
  parser: optional(z.string()),
  requires: optional(z.string()),
  info: optional(JsonObject),
  draft_files: unsupportedUnless(Digests, 'A draft model', (files) => Object.keys(files).length === 0),
  draft_quantize: unsupportedUnless(z.string(), 'A draft model', isEmptyText),
  remote_host: unsupportedUnless(z.string(), 'A model on another server', isEmptyText),
})
