/** Names of pages about Fastify. */
import type { FastifyInstance, RouteHandler } from 'fastify'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by a hook of the app. */
    user: { readonly id: string }
  }
}

// Exports:
export { adminPlugin, llmPlugin, rateLimit } from '@modelmount/fastify'
export { fastify } from 'fastify'
export declare const app: FastifyInstance
export declare const tell: RouteHandler
