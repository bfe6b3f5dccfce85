/** The entry point `@modelmount/console/fastify`. */
import type { Llm } from '@modelmount/core'
import { prepareTable, type TableMountOptions } from '@modelmount/core/adapter'
import { addMount } from '@modelmount/fastify'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type ConsoleOptions, consoleRoutes } from './console-routes.ts'

/** Options of the console as a Fastify plugin, with `authenticate`, which gets the request of Fastify. */
export interface FastifyConsoleOptions extends ConsoleOptions, TableMountOptions<FastifyRequest> {
  /** The object that `createLlm()` has returned. The plugin does not close it. */
  readonly llm: Llm
}

/**
 * Adds the console. Register it with a separate prefix: `app.register(consolePlugin, { llm, prefix: '/console' })`.
 * Without `authenticate`, viewers log in with an API key of `createLlm({ auth: 'keys' })`.
 */
export const consolePlugin = (app: FastifyInstance, options: FastifyConsoleOptions): Promise<void> =>
  addMount(app, options, (llm, { apiUrl, loginLinks, ...mountOptions }) =>
    prepareTable(llm, consoleRoutes({ apiUrl, loginLinks }), mountOptions),
  )
