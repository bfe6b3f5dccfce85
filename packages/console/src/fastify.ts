/** The entry point `@modelmount/console/fastify`. */
import type { Llm } from '@modelmount/core'
import { prepareTable, type TableMountOptions } from '@modelmount/core/adapter'
import { addRoutes } from '@modelmount/fastify'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type ConsoleOptions, consoleRoutes } from './console-routes.ts'

export interface FastifyConsoleOptions extends ConsoleOptions, TableMountOptions<FastifyRequest> {
  readonly llm: Llm
}

/**
 * Adds the console. Register it with a prefix of its own: `app.register(consolePlugin, { llm, prefix: '/console' })`.
 * Without `authenticate`, viewers log in with an API key of `createLlm({ auth: 'keys' })`.
 */
export async function consolePlugin(app: FastifyInstance, options: FastifyConsoleOptions): Promise<void> {
  const { llm, apiUrl, loginLinks, unknownRoutes, bodyLimit, publicUrl, authenticate, authenticateTimeout } =
    options
  const mountOptions = { unknownRoutes, bodyLimit, publicUrl, authenticate, authenticateTimeout }
  addRoutes(app, llm, prepareTable(llm, consoleRoutes({ apiUrl, loginLinks }), mountOptions))
}
