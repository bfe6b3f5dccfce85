/** Names of pages about Koa. */
import type Router from '@koa/router'
import type Koa from 'koa'
import type { Middleware } from 'koa'

// Exports:
export { adminRouter, healthRouter, llmRouter, metricsRouter, rateLimit } from '@modelmount/koa'
export declare const app: Koa
export declare const api: Router
export declare const router: Router
export declare const tell: Middleware
