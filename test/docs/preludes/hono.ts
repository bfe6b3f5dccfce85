/** Names of pages about Hono, which this workspace does not install. */
import type { Hono, Middleware } from 'hono'

// Exports:
export declare const app: Hono
export declare const requireUser: Middleware
