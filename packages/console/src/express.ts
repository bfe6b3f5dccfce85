/** The entry point `@modelmount/console/express`. */
import type { Llm } from '@modelmount/core'
import { prepareTable, type TableMountOptions } from '@modelmount/core/adapter'
import { createRouter } from '@modelmount/express'
import type { Request, Router } from 'express'
import { type ConsoleOptions, consoleRoutes } from './console-routes.ts'

/** Options of the console in an Express app, with `authenticate`, which gets the request of Express. */
export type ExpressConsoleOptions = ConsoleOptions & TableMountOptions<Request>

/**
 * Creates a router with the console. Mount it below a separate path: `app.use('/console', consoleRouter(llm))`. The option
 * `authenticate` returns the viewer and its scopes. Without it, viewers log in with an API key of
 * `createLlm({ auth: 'keys' })`.
 */
export const consoleRouter = (
  llm: Llm,
  { apiUrl, loginLinks, ...options }: ExpressConsoleOptions = {},
): Router => createRouter(llm, prepareTable(llm, consoleRoutes({ apiUrl, loginLinks }), options))
