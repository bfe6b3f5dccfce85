/** Names that code blocks of all pages can use without a declaration, because the page has introduced them. */
import type { Server } from 'node:http'
import type { createModelmount } from '@modelmount/ai-sdk'
import type { Caller, Llm, LlmOptions } from '@modelmount/core'
import type { RateLimiter, Reservation } from '@modelmount/core/limits'
import type { ToolSet } from 'ai'

// Exports:
export { createModelmount } from '@modelmount/ai-sdk'
export { collect, createLlm, LlmError, routesFor } from '@modelmount/core'
export { toFetchHandler } from '@modelmount/core/http'
export { readEvents, scriptedEngine } from '@modelmount/core/testing'
export { generateText, streamText } from 'ai'
export { afterAll, beforeAll, expect, test } from 'vitest'
export { z } from 'zod'
export declare const llm: Llm
export declare const limiter: RateLimiter
export declare const reservation: Reservation
export declare const server: Server
export declare const modelmount: ReturnType<typeof createModelmount>
export declare const handbook: string
export declare const prices: LlmOptions['prices']
/** The text of a streamed answer. */
export declare const text: string
export declare const tickets: AsyncIterable<{ readonly id: number; readonly text: string }>
export declare const tools: ToolSet
export declare const signal: AbortSignal
export declare function callerOf(request: unknown): Caller
export declare function findUser(authorization: string | null): Promise<Caller | undefined>
export declare function notify(caller: string, threshold: number): void
/** Finds passages about a question. */
export declare function search(
  question: string,
): Promise<readonly { readonly title: string; readonly text: string }[]>
