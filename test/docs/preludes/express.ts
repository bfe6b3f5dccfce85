/** Names of pages about Express. */
import type { Application, RequestHandler } from 'express'

declare global {
  namespace Express {
    interface Request {
      /** Set by `requireUser`. */
      user: { readonly id: string; readonly team: string }
    }
  }
}

// Exports:
export { adminRouter, healthRouter, llmRouter, metricsRouter, rateLimit } from '@modelmount/express'
export declare const app: Application
export declare const requireUser: RequestHandler
export declare const tell: RequestHandler
