/** Mounts the routes of an `Llm` in a Fastify app, as an encapsulated plugin. */
import { Readable } from 'node:stream'
import type { Llm } from '@modelmount/core'
import {
  type AdminMountOptions,
  type HealthMountOptions,
  type MetricsMountOptions,
  type Mount,
  type MountOptions,
  prepareAdminMount,
  prepareHealthMount,
  prepareMetricsMount,
  prepareMount,
} from '@modelmount/core/adapter'
import {
  type HttpRequest,
  type HttpResponse,
  type NodeRequestOptions,
  readNodeRequest,
} from '@modelmount/core/http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/** Options of the plugin with the public APIs. `authenticate` gets the request of Fastify. */
export interface LlmPluginOptions extends MountOptions<FastifyRequest> {
  /** The object that `createLlm()` has returned. The plugin does not close it. */
  readonly llm: Llm
}

/** Options of the plugin with the admin API. `authenticate` gets the request of Fastify. */
export interface AdminPluginOptions extends AdminMountOptions<FastifyRequest> {
  /** The object that `createLlm()` has returned. The plugin does not close it. */
  readonly llm: Llm
}

/** Options of the plugin with the health routes. `authenticate` gets the request of Fastify. */
export interface HealthPluginOptions extends HealthMountOptions<FastifyRequest> {
  /** The object that `createLlm()` has returned. The plugin does not close it. */
  readonly llm: Llm
}

/** Options of the plugin with the metrics. `authenticate` gets the request of Fastify. */
export interface MetricsPluginOptions extends MetricsMountOptions<FastifyRequest> {
  /** The object that `createLlm()` has returned. The plugin does not close it. */
  readonly llm: Llm
}

/** Options of `app.register()`. Fastify passes them to the plugin, too. */
interface RegisterOptions {
  readonly prefix?: unknown
  readonly logLevel?: unknown
  readonly logSerializers?: unknown
}

/**
 * Adds the routes of an `Llm` to an app: `app.register(llmPlugin, { llm, prefix: '/llm' })`. Hooks of the app run for
 * the routes. Its body parsers and its `bodyLimit` do not apply to them.
 */
export const llmPlugin = (app: FastifyInstance, options: LlmPluginOptions): Promise<void> =>
  addMount(app, options, prepareMount)

/**
 * Adds the admin API, for callers with the scope `admin`. Register it with a separate prefix:
 * `app.register(adminPlugin, { llm, prefix: '/admin' })`.
 */
export const adminPlugin = (app: FastifyInstance, options: AdminPluginOptions): Promise<void> =>
  addMount(app, options, prepareAdminMount)

/**
 * Adds `/livez`, `/readyz` and `/startupz`, which load balancers and orchestrators call without authentication:
 * `app.register(healthPlugin, { llm })`.
 */
export const healthPlugin = (app: FastifyInstance, options: HealthPluginOptions): Promise<void> =>
  addMount(app, options, prepareHealthMount)

/**
 * Adds `GET /metrics` for Prometheus, for callers with the scope `admin:read`, and with `auth: 'anonymous'` for direct
 * calls from this machine: `app.register(metricsPlugin, { llm })`. Needs the package `prom-client`.
 */
export const metricsPlugin = (app: FastifyInstance, options: MetricsPluginOptions): Promise<void> =>
  addMount(app, options, prepareMetricsMount)

/**
 * Adds routes, also those of another package.
 *
 * @param prepare checks the options, which it gets without those of Fastify
 */
export async function addMount<Options extends object>(
  app: FastifyInstance,
  options: Options & { readonly llm: Llm },
  prepare: (llm: Llm, options: Omit<Options, 'llm' | keyof RegisterOptions>) => Mount<FastifyRequest>,
): Promise<void> {
  const { llm, prefix, logLevel, logSerializers, ...mountOptions } = options as Options &
    RegisterOptions & { readonly llm: Llm }
  addRoutes(app, llm, prepare(llm, mountOptions))
}

function addRoutes(
  app: FastifyInstance,
  llm: Llm,
  { routes, handleUnmatched, passesUnmatched, bodyLimit, publicUrl, authenticate }: Mount<FastifyRequest>,
): void {
  // The routes read their bodies themselves. This applies only within the plugin.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null))
  // Fastify rejects an invalid content-type before any parser runs.
  app.addHook('preParsing', async (request) => {
    const { 'content-type': type = '*/*' } = request.headers
    if (!/^[^\s/;]+\/[^\s/;]+/.test(type)) request.headers = { 'content-type': 'application/octet-stream' }
  })

  const depth = app.prefix.split('/').length
  const read = (
    request: FastifyRequest,
    reply: FastifyReply,
    more: Partial<NodeRequestOptions> = {},
  ): HttpRequest => {
    const [path = ''] = request.url.split('?', 1)
    const { ip: clientAddress, host, protocol, originalUrl } = request
    return {
      ...readNodeRequest(request.raw, reply.raw, {
        path: `/${path.split('/').slice(depth).join('/')}`,
        ...{ clientAddress, host: host || undefined, protocol, originalUrl },
        ...more,
      }),
      responseHeader: (name) => reply.getHeader(name)?.toString(),
    }
  }

  for (const { method, path, handle } of routes) {
    app.route({
      method,
      exposeHeadRoute: method === 'GET',
      url: toUrl(path),
      handler: async (request, reply) => {
        const params = toParams(path, request.params as Record<string, string>)
        // Fastify's router lets parameters be empty.
        if (Object.values(params).includes('')) return reply.callNotFound()
        const httpRequest = read(request, reply, {
          params,
          // Serverless hosts store a parsed body here.
          parsedBody: (request.raw as { readonly body?: unknown }).body,
          bodyLimit,
          publicUrl,
          authenticate: (disconnected) => authenticate(request, disconnected),
        })
        return send(reply, await handle(httpRequest, llm))
      },
    })
  }
  if (passesUnmatched(app.prefix)) return
  app.setNotFoundHandler(async (request, reply) => send(reply, handleUnmatched(read(request, reply), llm)))
}

/** Fastify's wildcard has no name: `/v1/models/*model` becomes `/v1/models/*`. */
const wildcard = /\*(\w+)$/
const toUrl = (path: string): string => path.replace(wildcard, '*')

function toParams(path: string, { '*': rest, ...params }: Record<string, string>): Record<string, string> {
  const [, name] = wildcard.exec(path) ?? []
  return name === undefined || rest === undefined ? params : { ...params, [name]: rest }
}

/** Answers through Fastify, so that hooks can see and change the response. */
function send(reply: FastifyReply, { status, headers, body }: HttpResponse): FastifyReply {
  const payload = body === null ? undefined : typeof body === 'string' ? body : Readable.from(body)
  // A hook, such as a timeout, has already answered.
  if (reply.sent) {
    if (payload instanceof Readable) payload.destroy()
    return reply
  }
  // The first frame may take long, so the headers are sent when Fastify begins to pipe the stream.
  if (payload instanceof Readable) reply.raw.once('pipe', () => reply.raw.flushHeaders())
  return reply.code(status).headers(headers).send(payload)
}
