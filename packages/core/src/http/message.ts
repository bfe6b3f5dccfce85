/** HTTP requests and responses, independent of any framework. */

import type { Caller } from '../accounts/auth/caller.ts'

/** An HTTP request, created by an adapter. It contains no framework types. */
export interface HttpRequest {
  readonly method: string
  /** Path below the mount point, such as `/v1/chat/completions`. */
  readonly path: string
  /** Decoded path parameters. Wildcard segments are joined with `/`, since model names contain slashes. */
  readonly params: Readonly<Record<string, string>>
  readonly remoteAddress: string | undefined
  /** Caller that the host app has authenticated. */
  readonly caller: Caller | undefined
  /** Aborts when the client disconnects. It may also abort after the response is finished. */
  readonly signal: AbortSignal
  /** @param name in lower case */
  header(name: string): string | undefined
  /** Returns a decoded query parameter. If it is repeated, returns its first value. */
  query(name: string): string | undefined
  /**
   * Returns the parsed JSON body, or the result of an earlier body parser. Throws an `LlmError`
   * `too_large` or `invalid_request`.
   *
   * @param defaultBody replaces an empty body; without it, an empty body is an error
   */
  json(defaultBody?: object): Promise<unknown>
  /**
   * Returns the raw body, without a size limit, for file uploads. Throws an `LlmError`
   * `invalid_request` if the body ends early, or if a body parser has consumed it without keeping its bytes.
   */
  bytes(): AsyncIterable<Uint8Array>
}

export interface HttpResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /**
   * Complete text, or frames that the adapter pulls one by one. On a disconnect, the adapter calls
   * `return()`.
   */
  readonly body: string | AsyncIterable<string> | null
}

/** Size limit of request bodies, unless the route or the host app sets another limit. */
export const defaultBodyLimit = '32mb'

export type Method = 'GET' | 'HEAD' | 'POST' | 'DELETE' | 'OPTIONS'
