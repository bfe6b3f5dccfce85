/** All that core knows of HTTP: one call in, one answer out. */

import type { Caller } from '../accounts/auth/caller.ts'

/** One call, as core sees it. Made by an adapter; nothing in it belongs to a framework. */
export interface HttpRequest {
  readonly method: string
  /** Below the mount point: `/v1/chat/completions`. */
  readonly path: string
  /** Decoded. Wildcards are joined with `/`: a model name keeps its slashes. */
  readonly params: Readonly<Record<string, string>>
  readonly remoteAddress: string | undefined
  /** Who calls, where the app has found out. */
  readonly caller: Caller | undefined
  /** Aborts when the client goes away before the response is finished. */
  readonly signal: AbortSignal
  /** @param name in lower case */
  header(name: string): string | undefined
  /** What the query string says, decoded; the first value where there are several. */
  query(name: string): string | undefined
  /**
   * The parsed body if something in front read it, else read here. Throws `too_large` and `invalid_request`.
   *
   * @param defaultBody what stands for a body that is empty; without it there has to be one
   */
  json(defaultBody?: object): Promise<unknown>
  /** The body as it comes, of any length: for files. Throws `invalid_request` where it ends too soon, or was read in front. */
  bytes(): AsyncIterable<Uint8Array>
}

export interface HttpResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Whole, or frames written as they are pulled. Its `return()` is called when nobody listens. */
  readonly body: string | AsyncIterable<string> | null
}

/** Size limit of a request body where neither the route nor the app sets one. */
export const defaultBodyLimit = '32mb'

export type Method = 'GET' | 'HEAD' | 'POST' | 'DELETE' | 'OPTIONS'
