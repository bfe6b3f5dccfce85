/** A route of the admin API, and what its handlers have in common. */
import type { z } from 'zod'
import type { Caller, Scope } from '../../accounts/auth/caller.ts'
import { maxPageSize, type PageQuery } from '../../accounts/page.ts'
import type { LlmError } from '../../errors.ts'
import type { HttpRequest } from '../../http/message.ts'
import type { Llm } from '../../llm.ts'

export interface AdminRoute {
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** The `operationId`, which generated clients use as the method's name. */
  readonly name: string
  readonly summary: string
  /** @default 'admin:read' for GET, else 'admin' */
  readonly scope?: Scope
  /** Schemas of the query parameters. */
  readonly query?: Readonly<Record<string, z.ZodType>>
  readonly body?: z.ZodType
  /** Whether an absent body counts as an empty object. @default false */
  readonly isBodyOptional?: boolean
  /** Whether the route can answer 409. @default false */
  readonly canConflict?: boolean
  /** Whether the route answers 400 in an app without a database. @default true */
  readonly needsDatabase?: boolean
  /** Schema of the JSON response. A media type stands for a response that `handle` renders, such as a stream. */
  readonly response: z.ZodType | string
  /** @default 200 */
  readonly status?: number
  /**
   * For the audit log: the tenant whose data a change is about, where neither `:id` nor `tenant` of the body or the
   * response say it.
   */
  tenantOf?(call: AdminCall): string
  /** For the audit log: what a change is about, as far as the request does not say it. If it rejects, nothing is added. */
  describeBefore?(call: AdminCall): Promise<ChangeContext>
  /** Returns the value of the JSON response. With a media type as `response`, returns an `HttpResponse`. */
  handle(call: AdminCall): Promise<unknown>
}

export interface ChangeContext {
  /** Added to the requested settings. */
  readonly changes: object
  readonly tenant?: string | undefined
}

export const scopeOf = ({ method, scope = method === 'GET' ? 'admin:read' : 'admin' }: AdminRoute): Scope =>
  scope

export interface AdminCall {
  readonly llm: Llm
  readonly caller: Caller
  /** Path parameter `:id`. Empty for routes without this parameter. */
  readonly id: string
  query(name: string): string | undefined
  /** Request body, validated by the route's schema. */
  readonly body: unknown
  readonly request: Pick<HttpRequest, 'signal' | 'header'>
  /** Logs an error that occurs after the headers are sent, and renders it as a frame of the stream. */
  onError(error: LlmError): string
}

/** Parses the page that a request asks for. Core checks the limit. */
export function parsePage(query: AdminCall['query']): Page {
  const limit = query('limit')
  return { limit: limit === undefined ? maxPageSize : Number(limit || Number.NaN), after: query('after') }
}

/** Adds `next`, the value of `after` for the next page, unless this is the last page. */
export const toPage = <Row>(data: readonly Row[], { limit }: Page, idOf: (row: Row) => string): object => {
  const last = data.at(-1)
  return { data, ...(last !== undefined && data.length >= limit && { next: idOf(last) }) }
}

interface Page extends PageQuery {
  readonly limit: number
}
