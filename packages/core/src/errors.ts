/** The toolkit's one error class. Thrown where the error is known, rendered once per dialect. */

const codes = [
  'invalid_request',
  'context_length',
  'authentication',
  'permission',
  'quota',
  'not_found',
  'conflict',
  'too_large',
  'rate_limit',
  'overloaded',
  'upstream',
  'internal',
  'method_not_allowed',
] as const
export type LlmErrorCode = (typeof codes)[number]

export interface LlmErrorDetails {
  /** The field that is wrong, as a path: `messages[0].role`. */
  readonly param?: string
  /** The kind of problem with the field, for dialects that tell it. */
  readonly issue?: Issue
  readonly inputTokens?: number
  readonly contextSize?: number
  /** The model that was not found, as the caller named it. */
  readonly model?: string
  /** The path that no route has. */
  readonly path?: string
  readonly retryAfterMs?: number
  /** The body is empty, or white space only. */
  readonly emptyBody?: true
  /** A page of a browser was rejected: by its origin, or by a Host header of another machine. */
  readonly page?: true
  /** The limit that rejected the call (absent for concurrent calls), and the status of all limits. */
  readonly exceeded?: LimitStatus['name']
  readonly limits?: readonly LimitStatus[]
  /** For `quota`: the name of the key, the period of its spending limit, and the start of the next period. `lifetime` has none. */
  readonly keyName?: string
  readonly period?: 'day' | 'month' | 'lifetime'
  readonly resumesAt?: Date
  /** A mistake in the setup of the app, which no client can correct. */
  readonly setup?: boolean
}

/** The status of a limit. Of several limits with the same name, the one with the least left. */
export interface LimitStatus {
  readonly name: 'requests' | 'tokens'
  /** Requests or tokens per window, which is also the most that can be used at once. */
  readonly limit: number
  /** Requests or tokens that can be used now. */
  readonly remaining: number
  /** Milliseconds until `remaining` is `limit`. */
  readonly resetMs: number
  /** @default 60,000 */
  readonly windowMs?: number
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

/** HTTP status by error code, for routes of the app and for APIs without statuses of their own. */
const statuses = {
  invalid_request: 400,
  context_length: 400,
  authentication: 401,
  permission: 403,
  quota: 429,
  not_found: 404,
  conflict: 409,
  too_large: 413,
  rate_limit: 429,
  overloaded: 503,
  upstream: 500,
  internal: 500,
  method_not_allowed: 405,
} as const satisfies Record<LlmErrorCode, number>

const mark = Symbol.for('modelmount.LlmError')

/** Everything the toolkit throws on purpose. The message is safe to show a client; `cause` never is. */
export class LlmError extends Error {
  override readonly name = 'LlmError'
  readonly code: LlmErrorCode
  readonly details: LlmErrorDetails
  /** Read by the error handlers of Express and Koa, which then show the message. Koa also writes them. */
  readonly status: number
  readonly expose = true

  constructor(code: LlmErrorCode, message: string, details: LlmErrorDetails = {}, options?: ErrorOptions) {
    super(message, options)
    this.code = code
    this.details = details
    this.status = statuses[code]
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

  /** Passes an `LlmError` on (from any copy of this package); anything else becomes `internal`, with its cause off the wire. */
  static from(cause: unknown): LlmError {
    if (LlmError.is(cause)) return cause
    return new LlmError('internal', 'Something went wrong inside the server.', {}, { cause })
  }
}

export const invalidRequest = (message: string, details: LlmErrorDetails = {}): LlmError =>
  new LlmError('invalid_request', message, details)

export const modelNotFound = (name: string): LlmError =>
  new LlmError('not_found', `model "${name}" not found`, { param: 'model', model: name })

export const contextLengthExceeded = (inputTokens: number, contextSize: number): LlmError =>
  new LlmError(
    'context_length',
    `The prompt has ${inputTokens} tokens and the context holds ${contextSize}, of which the answer needs at least one.`,
    { inputTokens, contextSize },
  )

/** A path such as `messages[0].role`. Keys come from clients: they may be megabytes, or lone surrogates. */
export const formatFieldPath = (path: readonly PropertyKey[]): string =>
  path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`
    const name = String(key).toWellFormed()
    const short = name.length > maxKeyLength ? `${name.slice(0, maxKeyLength).toWellFormed()}…` : name
    return text ? `${text}.${short}` : short
  }, '')

const maxKeyLength = 64
