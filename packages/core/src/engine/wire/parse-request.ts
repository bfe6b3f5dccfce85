/** Validates requests: in the host app before they are sent, and in the model process when they arrive. */
import type { z } from 'zod'
import { formatFieldPath, invalidRequest } from '../../errors.ts'
import type { EmbedRequest, RerankRequest } from '../embeddings.ts'
import type { GenerateRequest, LoadOptions } from '../request.ts'
import { measureTextLength } from '../request-input.ts'
import { limits } from '../request-limits.ts'
import type { DetokenizeRequest, TokenizeRequest } from '../tokens.ts'
import {
  DetokenizeSchema,
  EmbedSchema,
  ForwardedGenerateSchema,
  GenerateSchema,
  ModelSchema,
  RerankSchema,
  TokenizeSchema,
} from './request-schema.ts'

/**
 * Request fields whose names are left out of an error's `param`, since neither callers of `chat()` nor HTTP
 * clients write these names.
 */
const omittedParamKeys: ReadonlySet<PropertyKey> = new Set(['input', 'sampling', 'load'])

/** Throws an `LlmError` `invalid_request` for a value that the native code must not receive. */
export const parseGenerateRequest = createParser<GenerateRequest>(
  GenerateSchema,
  measureTextLength,
  'messages',
)
/** Like `parseGenerateRequest`, for a request that another app forwards, and that may have images. */
export const parseForwardedRequest = createParser<GenerateRequest>(
  ForwardedGenerateSchema,
  measureTextLength,
  'messages',
)
export const parseEmbedRequest = createParser<EmbedRequest>(
  EmbedSchema,
  ({ inputs }) => sumLengths(inputs),
  'inputs',
)
export const parseRerankRequest = createParser<RerankRequest>(
  RerankSchema,
  ({ query, documents }) => sumLengths([query, ...documents]),
  'documents',
)
export const parseTokenizeRequest = createParser<TokenizeRequest>(
  TokenizeSchema,
  ({ text }) => text.length,
  'text',
)
export const parseDetokenizeRequest = createParser<DetokenizeRequest>(
  DetokenizeSchema,
  ({ tokens }) => tokens.length,
  'tokens',
)
/** A request to load or unload a model. */
export const parseModelRequest = createParser<{ readonly model: string; readonly load?: LoadOptions }>(
  ModelSchema,
  ({ model }) => model.length,
  'model',
)

/** Returns the total length in characters. A token id counts as one character. */
export function sumLengths(pieces: readonly { readonly length: number }[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0)
}

/** @param longestField field that the error names if the text of the request is too long */
function createParser<T>(
  schema: z.ZodType,
  length: (request: T) => number,
  longestField: string,
): (value: unknown) => T {
  return (value) => {
    const result = schema.safeParse(value)
    if (!result.success) {
      const [issue] = result.error.issues
      const param = formatFieldPath(issue?.path.filter((key) => !omittedParamKeys.has(key)) ?? [])
      throw invalidRequest(`Invalid '${param}': ${issue?.message}`, { param })
    }
    const request = result.data as T
    if (length(request) <= limits.text) return request
    throw invalidRequest(`The text of '${longestField}' is longer than ${limits.text} characters.`, {
      param: longestField,
    })
  }
}
