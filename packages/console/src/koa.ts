/** The entry point `@modelmount/console/koa`. */
import type { Router, RouterContext } from '@koa/router'
import type { Llm } from '@modelmount/core'
import { prepareTable, type TableMountOptions } from '@modelmount/core/adapter'
import { createRouter } from '@modelmount/koa'
import { type ConsoleOptions, consoleRoutes } from './console-routes.ts'

/** Options of the console in a Koa app, with `authenticate`, which gets the context of the router. */
export type KoaConsoleOptions = ConsoleOptions & TableMountOptions<RouterContext>

/**
 * Creates a router with the console. Give it a separate path: `consoleRouter(llm).prefix('/console')`. Without
 * `authenticate`, viewers log in with an API key of `createLlm({ auth: 'keys' })`.
 */
export const consoleRouter = (llm: Llm, { apiUrl, loginLinks, ...options }: KoaConsoleOptions = {}): Router =>
  createRouter(llm, prepareTable(llm, consoleRoutes({ apiUrl, loginLinks }), options))
