/** HTTP requests and responses, independent of any framework. */

import type { Caller } from '../accounts/auth/caller.ts'

/** An HTTP request, created by an adapter. It contains no framework types. */
export interface HttpRequest {
  /** HTTP method in upper case. */
  readonly method: string
  /** Path below the mount point, such as `/v1/chat/completions`. */
  readonly path: string
  /** Decoded path parameters. Wildcard segments are joined with `/`, since model names contain slashes. */
  readonly params: Readonly<Record<string, string>>
  /** Address of the other end of the connection, which may be a proxy. */
  readonly remoteAddress: string | undefined
  /**
   * Address of the client, as a proxy that the host app trusts reports it.
   *
   * @default `remoteAddress`
   */
  readonly clientAddress?: string | undefined
  /**
   * Host name and port that the client called, as a proxy that the host app trusts reports them.
   *
   * @default the header `host`
   */
  readonly host?: string | undefined
  /**
   * Returns the URL of the mount point as the client calls it, such as `https://api.example.com/llm`. Returns
   * undefined if the request does not tell, such as without a valid `host` header.
   */
  baseUrl(): string | undefined
  /** Path of the request line, with the path of the mount point. Undefined if the adapter does not tell. */
  readonly originalPath?: string
  /** Such as `1.1`. Undefined if the platform does not tell. */
  readonly httpVersion: string | undefined
  /** Asks the host app for the caller. Called with `auth: 'host'`, after the check of the origin. */
  readonly authenticate?: () => Promise<Caller | undefined>
  /**
   * Authenticates the caller, instead of the option `auth`. Set by routes that have sessions, such as those of the
   * console. Rejects with an `LlmError`.
   */
  readonly findCaller?: () => Promise<Caller>
  /**
   * Aborts when the client disconnects, and when a streamed response is over. It may also abort after another
   * response is over.
   */
  readonly signal: AbortSignal
  /** Closes the connection. Called when the client does not read a stream. */
  readonly disconnect?: () => void
  /**
   * Closes the connection if the client takes nothing of the response, or does not end the request. Called when
   * the response is ready to be sent.
   */
  readonly closeIfStalled?: (limits: StallLimits) => void
  /**
   * Calls the function once, when the response has left the process or the connection is closed. Called before
   * the response is sent.
   */
  readonly onSent?: (callback: () => void) => void
  /**
   * Returns a header. Values of a repeated header are joined. Undefined if it is absent.
   *
   * @param name in lower case
   */
  header(name: string): string | undefined
  /** Returns the names of all headers, in lower case. */
  headerNames(): readonly string[]
  /** Returns a header of the response that the host app has already set. */
  readonly responseHeader?: (name: string) => string | undefined
  /** Returns a decoded query parameter. If it is repeated, returns its first value. */
  query(name: string): string | undefined
  /** Returns all values of a query parameter, decoded. */
  queryAll(name: string): readonly string[]
  /**
   * Returns the parsed JSON body, or the result of an earlier body parser. Throws an `LlmError`
   * `too_large` or `invalid_request`, or an error of the allowance.
   *
   * @param defaultBody replaces an empty body; without it, an empty body is an error
   * @param allowance limits the memory and the pauses of the body. Not used after an earlier body parser.
   */
  json(defaultBody?: object, allowance?: BodyAllowance): Promise<unknown>
  /**
   * Returns the raw body, without a size limit, for file uploads. Throws an `LlmError` `invalid_request` if
   * the body ends early, or if a body parser has consumed it without keeping its bytes. Throws the errors of
   * the allowance.
   */
  bytes(allowance?: BodyAllowance): AsyncIterable<Uint8Array>
  /**
   * Returns a JSON body as bytes, without a size limit, for code that parses it piece by piece. If a body parser
   * has parsed it, returns its value as JSON again. Throws like `bytes`.
   */
  jsonBytes(allowance?: BodyAllowance): AsyncIterable<Uint8Array>
  /**
   * Reserves memory for what the handler loads in addition to the body, until the response is over. Throws like
   * `BodyAllowance.reserve`.
   */
  readonly reserve?: (bytes: number) => void
}

/** The memory and the time that the body of one request may take. */
export interface BodyAllowance {
  /** Largest body that can ever be admitted, in bytes. */
  readonly maxBytes: number
  /**
   * How long the client may pause before the body is complete, in ms. For a JSON body, less than 1 KiB in this
   * time is a pause.
   */
  readonly stallTimeoutMs: number
  /**
   * Reserves memory before a body fills it. Throws an `LlmError` `rate_limit` if the bodies of the tenant
   * would take too much, and `overloaded` if those of all tenants would.
   */
  reserve(bytes: number): void
}

/** Time limits for the client of a request that has been answered. */
export interface StallLimits {
  /** How long the client may take nothing while output waits for it, in ms. */
  readonly responseMs: number
  /** How long the rest of a body may take that no handler reads, in ms. */
  readonly bodyMs: number
}

/** An HTTP response, which an adapter sends. */
export interface HttpResponse {
  /** HTTP status, such as 200. */
  readonly status: number
  /** Headers by name, in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /**
   * Complete text, or frames that the adapter pulls one by one. On a disconnect, the adapter calls
   * `return()`.
   */
  readonly body: string | ResponseFrames | null
}

export type ResponseFrames = AsyncIterable<string | Uint8Array>

/** Size limit of request bodies, unless the route or the host app sets another limit. */
export const defaultBodyLimit = '32mb'

/** HTTP methods of routes. */
export type Method = 'GET' | 'HEAD' | 'POST' | 'DELETE' | 'OPTIONS'
