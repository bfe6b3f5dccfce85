/**
 * Defines `LlmError`. Code throws it where it detects a problem, and each dialect renders it in its own
 * format.
 */

const codes = [
  'invalid_request',
  'context_length',
  'authentication',
  'permission',
  'quota',
  'not_found',
  'timeout',
  'conflict',
  'too_large',
  'rate_limit',
  'overloaded',
  'unavailable',
  'upstream',
  'invalid_output',
  'internal',
  'method_not_allowed',
] as const
/** The codes of all errors that a client or the host app may see. */
export type LlmErrorCode = (typeof codes)[number]

/** Facts about an error. Which fields are set depends on its code. */
export interface LlmErrorDetails {
  /** Path of the invalid field, such as `messages[0].role`. */
  readonly param?: string
  /** The kind of problem with the field. Some dialects include it in their responses. */
  readonly issue?: Issue
  /** For `context_length`: length of the prompt, in tokens. */
  readonly inputTokens?: number
  /** For `context_length`: size of the context, in tokens. */
  readonly contextSize?: number
  /** The larger context size that the caller asked for, if the caller lacks the scope `models`. */
  readonly requestedContextSize?: number
  /** The model that was not found, as the caller named it. */
  readonly model?: string
  /** The path of the request, if no route matches it. */
  readonly path?: string
  /** How long to wait before the next try, in ms. It becomes the header `retry-after`, in whole seconds. */
  readonly retryAfterMs?: number
  /** Set if the request body is empty or only white space. */
  readonly emptyBody?: true
  /**
   * Set if the request of a browser page was rejected. The reason is its origin, or a Host header that names
   * another machine.
   */
  readonly page?: true
  /** The kind of limit that rejected the call. Absent for concurrent calls and for request bodies. */
  readonly exceeded?: LimitStatus['name']
  /** The status of all limits of the call. */
  readonly limits?: readonly LimitStatus[]
  /** For `quota`: name of the API key. */
  readonly keyName?: string
  /** For `quota`: period of the spending limit. */
  readonly period?: 'day' | 'month' | 'lifetime'
  /** For `quota`: start of the next period. Absent for `lifetime`. */
  readonly resumesAt?: Date
  /** For a model that is not found: the alias of the model that the client has used. */
  readonly alias?: string
  /** Set if the model process has ended during the call. */
  readonly processEnded?: true
  /** For `upstream`: what an upstream server, or the connection to it, has done. */
  readonly upstreamFailure?: UpstreamFailure
  /** For `invalid_output`: the text of the answer. */
  readonly text?: string
  /** For `invalid_output`: what the schema rejects. Absent if the answer was cut off. */
  readonly schemaIssues?: readonly SchemaIssue[]
  /** Whether the cause is a mistake in the setup or the code of the host app, which no client can correct. */
  readonly setup?: boolean
}

/**
 * `unreachable`: no connection. `lost`: the connection broke. `stalled`: no answer in time. `invalid`: an answer that
 * cannot be read. `refused`: the key, the address or the certificate is wrong. `failed`: the server says so.
 */
export type UpstreamFailure = 'unreachable' | 'lost' | 'stalled' | 'invalid' | 'refused' | 'failed'

/**
 * The status of a limit. If several limits have the same name and window, only the limit with the lowest
 * `remaining` is reported.
 */
export interface LimitStatus {
  /** What the limit counts: requests, or tokens of a kind. */
  readonly name: 'requests' | 'tokens' | 'inputTokens' | 'outputTokens'
  /** Requests or tokens per window. All of them can be used at once. */
  readonly limit: number
  /** Requests or tokens that can be used now. */
  readonly remaining: number
  /** Milliseconds until `remaining` equals `limit` again, if no further call is made. */
  readonly resetMs: number
  /** Length of the window in milliseconds. @default 60,000 */
  readonly windowMs?: number
}

/** What a schema rejects in an answer. */
export interface SchemaIssue {
  /** Path of the field, such as `cities[0].name`. Empty for the whole answer. */
  readonly path: string
  readonly message: string
}

/** Kinds of problems with one field of a request. */
export type Issue =
  | 'missing'
  | 'type'
  | 'value'
  | 'empty'
  | 'array_too_long'
  | 'string_too_long'
  | 'decimal_too_big'
  | 'decimal_too_small'
  | 'integer_too_big'
  | 'integer_too_small'
  | 'unsupported'

/** HTTP status of each error code. A dialect may use another status. */
const statuses = {
  invalid_request: 400,
  context_length: 400,
  authentication: 401,
  permission: 403,
  quota: 429,
  not_found: 404,
  timeout: 408,
  conflict: 409,
  too_large: 413,
  rate_limit: 429,
  overloaded: 503,
  // The database fails, or another part that the server depends on.
  unavailable: 503,
  upstream: 500,
  // The answer of the model does not match the schema.
  invalid_output: 500,
  internal: 500,
  method_not_allowed: 405,
} as const satisfies Record<LlmErrorCode, number>

/** Returns the HTTP status of an error code, such as 429 for `rate_limit`. */
export const statusOf = (code: LlmErrorCode): number => statuses[code]

const mark = Symbol.for('modelmount.LlmError')

/** The only error class of Modelmount. Clients may see its message, but `cause` is never sent to them. */
export class LlmError extends Error {
  override readonly name = 'LlmError'
  /** What went wrong. Each code has one HTTP status, and one shape per API. */
  readonly code: LlmErrorCode
  /** Facts about the error, such as the invalid field or the time to wait. */
  readonly details: LlmErrorDetails
  /**
   * The HTTP status, for routes of the host app. Koa assigns `status`, so it cannot be a getter. Nest treats an error
   * as one of the package `http-errors` if it has `status`, the same `statusCode`, and `expose`. An `invalid_request` has
   * status 500 if the app made the mistake (`details.setup`).
   */
  readonly status: number
  /** The same as `status`, for frameworks that read this name. */
  readonly statusCode: number
  /** Whether the error handlers of Koa and Nest send the message. False with status 500 and `details.setup`. */
  readonly expose: boolean
  /** Headers that the error handlers of Express, Koa and Fastify send. */
  readonly headers: Readonly<Record<string, string>>

  constructor(code: LlmErrorCode, message: string, details: LlmErrorDetails = {}, options?: ErrorOptions) {
    super(message, options)
    this.code = code
    this.details = details
    this.status = code === 'invalid_request' && details.setup ? 500 : statusOf(code)
    this.statusCode = this.status
    this.expose = !(details.setup && this.status === 500)
    const { retryAfterMs } = details
    this.headers =
      retryAfterMs === undefined ? {} : { 'retry-after': `${Math.max(1, Math.ceil(retryAfterMs / 1_000))}` }
  }

  get [mark](): true {
    return true
  }

  /** Whether a value is an `LlmError`, of any copy of this package. */
  static is(value: unknown): value is LlmError {
    return (
      typeof value === 'object' && value !== null && mark in value && codes.includes((value as LlmError).code)
    )
  }

  /**
   * Returns an `LlmError` unchanged, even one from another copy of this package. Wraps any other value in an
   * `internal` error, whose `cause` is never sent to clients.
   */
  static from(cause: unknown): LlmError {
    if (LlmError.is(cause)) return cause
    return new LlmError('internal', 'Something went wrong inside the server.', {}, { cause })
  }
}

export const invalidRequest = (message: string, details: LlmErrorDetails = {}): LlmError =>
  new LlmError('invalid_request', message, details)

/** @param alias name that the client has used for the model */
export const modelNotFound = (name: string, alias?: string): LlmError =>
  new LlmError('not_found', `model "${name}" not found${describeAlias(alias)}`, {
    ...{ param: 'model', model: name },
    ...(alias !== undefined && { alias }),
  })

/** Addition to an error about a missing model. Empty without an alias. */
export const describeAlias = (alias: string | undefined): string =>
  alias === undefined ? '' : ` (alias "${alias}")`

export const contextLengthExceeded = (inputTokens: number, contextSize: number): LlmError =>
  new LlmError(
    'context_length',
    `The prompt has ${inputTokens} tokens and the context holds ${contextSize}, of which the answer needs at least one.`,
    { inputTokens, contextSize },
  )

/**
 * Explains why a model does not have the context size that a caller asked for.
 *
 * @param option the name of the context size in the caller's API
 */
export const describeDeniedContext = (option: string, requestedContextSize: number): string =>
  `A \`${option}\` of ${requestedContextSize} requires the scope 'models', which the caller lacks. In the app, \`local.contextSize\` sets the context size for all callers.`

export const contextDenied = (requestedContextSize: number): LlmError =>
  new LlmError('permission', describeDeniedContext('contextSize', requestedContextSize), {
    param: 'contextSize',
    requestedContextSize,
  })

/**
 * Formats the path of a field, such as `messages[0].role`. The object keys in the path come from clients, so
 * a key may be megabytes long or contain lone surrogates.
 */
export const formatFieldPath = (path: readonly PropertyKey[]): string =>
  path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`
    const name = String(key).toWellFormed()
    const short = name.length > maxKeyLength ? `${name.slice(0, maxKeyLength).toWellFormed()}…` : name
    return text ? `${text}.${short}` : short
  }, '')

const maxKeyLength = 64
