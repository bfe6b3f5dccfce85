/** The parts that all models share: the options of a call to an `Llm`, and its errors. */
import { APICallError } from '@ai-sdk/provider'
import type { Caller, Llm } from '@modelmount/core'
import { LlmError } from '@modelmount/core/engine'
import type { CallerOptions } from './provider-options.ts'

/** Name of the provider, and the key of its options in `providerOptions` and `providerMetadata`. */
export const providerName = 'modelmount'

/** The `Llm` and the name of a model, and who calls it. */
export interface ModelSource {
  readonly llm: Llm
  readonly caller?: Caller
  readonly modelId: string
}

/** Options of a call that `generate()`, `embed()` and `rerank()` share. */
export const toCallOptions = ({ caller }: ModelSource, { endUser, background }: CallerOptions) => ({
  ...(caller && { caller }),
  ...(endUser !== undefined && { endUser }),
  ...(background !== undefined && { background }),
})

/**
 * Runs a call. Rejects with the reason of the signal if it has aborted, as `fetch` does, and with an
 * `APICallError` instead of an `LlmError`.
 */
export async function withSdkErrors<Result>(
  modelId: string,
  signal: AbortSignal | undefined,
  run: () => Promise<Result>,
): Promise<Result> {
  try {
    return await run()
  } catch (cause) {
    throw toSdkError(cause, modelId, signal)
  }
}

export function toSdkError(cause: unknown, modelId: string, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted) return signal.reason
  return LlmError.is(cause) ? toApiCallError(cause, modelId) : cause
}

/**
 * The error that the SDK retries, for the same statuses as over HTTP: 408, 409, 429 and 5xx. It waits as long
 * as `retry-after-ms` says. An exceeded spending limit is not retried.
 */
function toApiCallError(error: LlmError, modelId: string): APICallError {
  const { code, message, status, details } = error
  const { retryAfterMs, param } = details
  const isFutile = code === 'quota' || (retryAfterMs ?? 0) >= longestWaitMs
  return new APICallError({
    message,
    // There is no HTTP request. The field is required.
    url: `${providerName}:${modelId}`,
    // Without the prompt, because the SDK prints errors of streams.
    requestBodyValues: { model: modelId },
    // A wrong option has 500 in the host app. The SDK would retry that.
    statusCode: code === 'invalid_request' ? 400 : status,
    ...(retryAfterMs !== undefined && { responseHeaders: retryHeaders(retryAfterMs) }),
    ...(isFutile && { isRetryable: false }),
    data: { code, ...(param !== undefined && { param }) },
    cause: error,
  })
}

/** For longer waits, the SDK ignores `retry-after-ms` and would retry in vain after two seconds. */
const longestWaitMs = 60_000

const retryHeaders = (ms: number): Record<string, string> => ({
  'retry-after': `${Math.ceil(ms / 1_000)}`,
  'retry-after-ms': `${Math.ceil(ms)}`,
})
