/**
 * Turns failures of an upstream server into errors for callers. The server's own text may contain its secrets or those of
 * other users, so neither the caller nor the log gets it.
 */
import { errors } from 'undici'
import { contextLengthExceeded, invalidRequest, LlmError, modelNotFound } from '../../errors.ts'
import { maxTextLength, type ReportedError, toCause } from './error-cause.ts'

/** The response of a server that has refused a request. */
export interface RefusedResponse extends ReportedError {
  readonly status: number
  /** Value of the header `retry-after`. */
  readonly retryAfter?: string | undefined
}

/** @param model name that the caller asked for */
export function toRefusal(response: RefusedResponse, model: string): LlmError {
  const { status, retryAfter, text } = response
  const cause = toCause(response)
  const overflow = findContextOverflow(text)
  if (overflow && status >= 400 && status < 500) return withCause(overflow, cause)
  if (status === 400 || status === 422)
    return new LlmError('invalid_request', 'The upstream server rejected the request.', {}, { cause })
  if (status === 401 || status === 403) return keyRejected(cause)
  if (status === 501 || (status === 404 && missingRoute.test(text)))
    return new LlmError('invalid_request', 'The upstream server does not support this.', {}, { cause })
  if (status === 404) return withCause(modelNotFound(model), cause)
  if (status === 413)
    return new LlmError('too_large', 'The request is too large for the upstream server.', {}, { cause })
  if (status === 429 || status === 503 || status === 529) {
    const retryAfterMs = parseRetryAfter(retryAfter)
    return new LlmError(
      'overloaded',
      'The upstream server is overloaded.',
      retryAfterMs === undefined ? {} : { retryAfterMs },
      { cause },
    )
  }
  if (status >= 300 && status < 400)
    return new LlmError(
      'upstream',
      'The upstream server redirects requests.',
      { setup: true, upstreamFailure: 'refused' },
      { cause },
    )
  return new LlmError('upstream', 'The upstream server failed.', { upstreamFailure: 'failed' }, { cause })
}

/**
 * An error that the server has sent within a response of status 200.
 *
 * @param status status that the error would have had before the response @default that in its `code`
 */
export function toInBandError(error: unknown, model: string, status = statusIn(error)): LlmError {
  const text = JSON.stringify(error)?.slice(0, maxTextLength) ?? ''
  if (status !== undefined && status >= 400) return toRefusal({ status, text }, model)
  const overflow = findContextOverflow(text)
  const cause = toCause({ text })
  if (overflow) return withCause(overflow, cause)
  if (/overloaded|rate_limit/.test(text))
    return new LlmError('overloaded', 'The upstream server is overloaded.', {}, { cause })
  return new LlmError('upstream', 'The upstream server failed.', { upstreamFailure: 'failed' }, { cause })
}

/** The key of this app is wrong, or may not do this. */
export const keyRejected = (cause: Error): LlmError =>
  new LlmError(
    'upstream',
    'The upstream server rejected the API key of this app.',
    { setup: true, upstreamFailure: 'refused' },
    { cause },
  )

/** @param cause an error of the connection */
export function toConnectionError(cause: unknown): LlmError {
  if (LlmError.is(cause)) return cause
  // This error contains what the server has sent.
  if (cause instanceof errors.HTTPParserError) return invalidResponse('it is no HTTP')
  const code = String((cause as { readonly code?: unknown })?.code ?? '')
  if (code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT')
    return new LlmError(
      'upstream',
      'The upstream server does not answer.',
      { upstreamFailure: 'stalled' },
      { cause },
    )
  if (/CERT|SELF_SIGNED|ERR_TLS|UNABLE_TO_(?:GET|VERIFY)/.test(code))
    return new LlmError(
      'upstream',
      'The certificate of the upstream server is not valid.',
      { setup: true, upstreamFailure: 'refused' },
      { cause },
    )
  if (['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'UND_ERR_CONNECT_TIMEOUT'].includes(code))
    return new LlmError(
      'upstream',
      'The upstream server cannot be reached.',
      { upstreamFailure: 'unreachable' },
      { cause },
    )
  return new LlmError(
    'upstream',
    'The connection to the upstream server was lost.',
    { upstreamFailure: 'lost' },
    { cause },
  )
}

/** The error has no `cause`, because errors of parsers quote what they parse. */
export const invalidResponse = (problem: string): LlmError =>
  new LlmError('upstream', `The upstream server sent an invalid response: ${problem}.`, {
    upstreamFailure: 'invalid',
  })

/** @param param path of the field in the engine's request, such as `sampling.topK` */
export const unsupportedByUpstream = (what: string, param: string): LlmError =>
  invalidRequest(`The upstream server of this model does not support ${what}.`, {
    param,
    issue: 'unsupported',
  })

/** Texts and fields of vLLM and OpenAI, llama-server, and Anthropic. */
const overflowPatterns: readonly {
  readonly pattern: RegExp
  readonly context: number
  readonly prompt: number
}[] = [
  { pattern: /maximum context length is (\d+) tokens[\s\S]*?\((\d+) in the messages/, context: 1, prompt: 2 },
  {
    pattern:
      /maximum context length is (\d+) tokens[\s\S]*?(?:resulted in|contains at least|requested) (\d+)/,
    context: 1,
    prompt: 2,
  },
  { pattern: /"n_prompt_tokens":\s*(\d+)[\s\S]*?"n_ctx":\s*(\d+)/, context: 2, prompt: 1 },
  { pattern: /prompt is too long: (\d+) tokens > (\d+)/, context: 2, prompt: 1 },
  { pattern: /The prompt has (\d+) tokens and the context holds (\d+)/, context: 2, prompt: 1 },
  { pattern: /it has (\d+) tokens, and the context holds (\d+)/, context: 2, prompt: 1 },
]
const overflowMarks =
  /context_length_exceeded|exceed_context_size|maximum context length|prompt is too long|longer than the context/

/** vLLM and SGLang, which use FastAPI, have only the routes that suit their model. */
const missingRoute = /^\s*\{\s*"detail"\s*:\s*"Not Found"\s*\}\s*$/

function findContextOverflow(text: string): LlmError | undefined {
  for (const { pattern, context, prompt } of overflowPatterns) {
    const match = pattern.exec(text)
    if (match) return contextLengthExceeded(Number(match[prompt]), Number(match[context]))
  }
  return overflowMarks.test(text)
    ? new LlmError('context_length', 'The prompt is longer than the context of the model.')
    : undefined
}

function statusIn(error: unknown): number | undefined {
  const code = (error as { readonly code?: unknown; readonly status?: unknown })?.code
  return typeof code === 'number' && code >= 400 && code < 600 ? code : undefined
}

const withCause = (error: LlmError, cause: Error): LlmError =>
  new LlmError(error.code, error.message, error.details, { cause })

/** A number of seconds, or a date. Returns milliseconds, at most an hour. */
function parseRetryAfter(value: string | undefined): number | undefined {
  if (value === undefined) return undefined
  const seconds = /^\s*\d+(?:\.\d+)?\s*$/.test(value)
    ? Number(value)
    : (Date.parse(value) - Date.now()) / 1_000
  return Number.isFinite(seconds) ? Math.min(3_600_000, Math.max(0, Math.ceil(seconds * 1_000))) : undefined
}
