/** A Fastify app with only the routes of Modelmount, as a handler for Node's server. */
import type { RequestListener } from 'node:http'
import type { Llm } from '@modelmount/core'
import { type LlmPluginOptions, llmPlugin } from '@modelmount/fastify'
import fastify, { type FastifyInstance, type RegisterOptions } from 'fastify'

/** Returns a handler whose requests wait until the app has started. */
export function fastifyHandler(
  llm: Llm,
  options: Omit<LlmPluginOptions, 'llm'> & RegisterOptions = {},
  // Otherwise Fastify itself answers ids of more than 100 characters, with 414.
  app: FastifyInstance = fastify({ routerOptions: { maxParamLength: 10_000 } }),
): RequestListener {
  app.register(llmPlugin, { llm, ...options })
  return listenerOf(app)
}

export function listenerOf(app: FastifyInstance): RequestListener {
  const starting = app.ready()
  return (req, res) => void starting.then(() => app.routing(req, res))
}
