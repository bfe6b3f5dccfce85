/** HTTP as core sees it: one request in, one response out. */

import type { Caller } from '../accounts/auth/caller.ts'

/** One HTTP request. An adapter creates it; no part of it belongs to a framework. */
export interface HttpRequest {
  readonly method: string
  /** Below the mount point: `/v1/chat/completions`. */
  readonly path: string
  /** Decoded path parameters. Wildcards are joined with `/`, so that a model name keeps its slashes. */
  readonly params: Readonly<Record<string, string>>
  readonly remoteAddress: string | undefined
  /** Caller that the app has authenticated. */
  readonly caller: Caller | undefined
  /** Aborts when the client disconnects before the response is finished. */
  readonly signal: AbortSignal
  /** @param name in lower case */
  header(name: string): string | undefined
  /** Decoded query parameter; the first value where there are several. */
  query(name: string): string | undefined
  /**
   * Parsed body, as a body parser left it or read here. Throws `too_large` and `invalid_request`.
   *
   * @param defaultBody replaces an empty body; without it, an empty body is an error
   */
  json(defaultBody?: object): Promise<unknown>
  /** Raw body of any length, for files. Throws `invalid_request` if it ends early or a body parser has consumed it. */
  bytes(): AsyncIterable<Uint8Array>
}

export interface HttpResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Complete text, or frames that are pulled one by one. `return()` is called when the client disconnects. */
  readonly body: string | AsyncIterable<string> | null
}

/** Size limit of a request body where neither the route nor the app sets one. */
export const defaultBodyLimit = '32mb'

export type Method = 'GET' | 'HEAD' | 'POST' | 'DELETE' | 'OPTIONS'
