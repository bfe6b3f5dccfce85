/** Options of an upstream engine, and their checks. */
import type { Capability } from '../../models/gguf/model-details.ts'
import { checkBoolean, checkInteger, checkKeys, checkObject, describeValue } from '../../options/check.ts'
import { capabilities } from '../wire/model-schema.ts'

/** Options of `upstreamEngine()`. */
export interface UpstreamOptions {
  /**
   * Base URL of the server, such as `http://10.0.0.7:8000` or `https://api.example.com/openai/v1`. A path that ends with
   * `/v1` or `/api` means the same without it. No request is sent to another host, and redirects are not followed.
   */
  readonly url: string | URL
  /**
   * The API that the server has. `openai`: vLLM, SGLang, llama-server, LM Studio and hosted services. `modelmount`: another
   * app with Modelmount, whose answers, errors and counts arrive without loss. The key of this app there needs the scope
   * `fleet`.
   *
   * @default 'openai'
   */
  readonly api?: ApiName
  /**
   * Which server has OpenAI's API. Servers add different fields and routes to it. A caller who asks for what the server
   * lacks gets an error.
   *
   * @default what the field `owned_by` of its models says
   */
  readonly server?: OpenAiServer | undefined
  /** API key of this app at the server, or a function that returns it for each request. @default none */
  readonly apiKey?: string | (() => string | Promise<string>) | undefined
  /** Further headers of each request. @default none */
  readonly headers?: Readonly<Record<string, string>>
  /**
   * Names of the models that calls may use, or what the server does not say about them.
   *
   * @default the models that the server lists, read again after a minute
   */
  readonly models?: readonly string[] | Readonly<Record<string, UpstreamModelOptions>>
  /**
   * A background call, such as an item of a batch, begins only while fewer calls than this of the app run at the server.
   *
   * @default 8
   */
  readonly backgroundBelow?: number
  /**
   * Whether the server is another app with Modelmount that trusts this one. Calls then name their tenant, and the server
   * neither limits nor charges them. The key of this app needs the scopes `inference` and `fleet`. Always with the API
   * `modelmount`.
   *
   * @default false
   */
  readonly forwardTenants?: boolean
  /** Time limit for a connection, in ms. @default 10,000 */
  readonly connectTimeoutMs?: number
  /** How long a call waits for the server's response to begin, in ms, such as in the server's queue. @default 300,000 */
  readonly responseTimeoutMs?: number
  /** Longest pause within a response, in ms. @default 60,000 */
  readonly stallTimeoutMs?: number
}

/** The APIs that an upstream server may have. */
export type ApiName = (typeof apiNames)[number]
/** Servers with OpenAI's API, whose extensions are known. `other` has none. */
export type OpenAiServer = (typeof servers)[number]

/** What a server does not say about a model. */
export interface UpstreamModelOptions {
  /** Maximum number of tokens of prompt and answer together. @default what the server says, else unknown */
  readonly contextSize?: number
  /** What the model can do. @default what the server says, else `completion` and `tools` */
  readonly capabilities?: readonly Capability[]
}

export interface ResolvedUpstreamOptions {
  /** Without a slash at its end, and without `/v1` or `/api`. */
  readonly baseUrl: URL
  /** Text from which digests of models and the fingerprint of answers are computed. */
  readonly identity: string
  readonly api: ApiName
  readonly server: OpenAiServer | undefined
  readonly apiKey: () => Promise<string | undefined>
  readonly headers: Readonly<Record<string, string>>
  /** Undefined if the server says which models it has. */
  readonly models: Readonly<Record<string, UpstreamModelOptions>> | undefined
  readonly backgroundBelow: number
  readonly forwardTenants: boolean
  readonly connectTimeoutMs: number
  readonly responseTimeoutMs: number
  readonly stallTimeoutMs: number
}

const apiNames = ['openai', 'anthropic', 'ollama', 'modelmount'] as const
const servers = ['vllm', 'sglang', 'llama-server', 'modelmount', 'openai', 'other'] as const
const names = [
  ...['url', 'api', 'server', 'apiKey', 'headers', 'models', 'backgroundBelow', 'forwardTenants'],
  ...['connectTimeoutMs', 'responseTimeoutMs', 'stallTimeoutMs'],
]
const maxTimeoutMs = 3_600_000

/** Throws a `TypeError` for an invalid option. */
export function resolveUpstreamOptions(options: UpstreamOptions): ResolvedUpstreamOptions {
  checkObject('', options)
  checkKeys('', options, names)
  const { url, api = 'openai', server, apiKey, headers = {}, models } = options
  const { forwardTenants = api === 'modelmount' } = options
  if (!apiNames.includes(api))
    throw new TypeError(`Expected \`api\` to be one of ${apiNames.join(', ')}, got ${describeValue(api)}`)
  if (server !== undefined && (api !== 'openai' || !servers.includes(server)))
    throw new TypeError(`Expected \`server\` to be one of ${servers.join(', ')}, with the API openai`)
  if (apiKey !== undefined && typeof apiKey !== 'string' && typeof apiKey !== 'function')
    throw new TypeError(
      `Expected \`apiKey\` to be a string or a function, got a value of type ${typeof apiKey}`,
    )
  checkBoolean('forwardTenants', forwardTenants)
  if (api === 'modelmount' && !forwardTenants)
    throw new TypeError('Expected `forwardTenants` to be true with the API modelmount')
  checkHeaders(headers)
  const baseUrl = toBaseUrl(url)
  const timeout = (
    name: 'connectTimeoutMs' | 'responseTimeoutMs' | 'stallTimeoutMs',
    byDefault: number,
  ): number => checkInteger(name, options[name], 1, maxTimeoutMs) ?? byDefault
  return {
    ...{ baseUrl, identity: baseUrl.href, api, server, headers, models: toModels(models), forwardTenants },
    apiKey: async () => (typeof apiKey === 'function' ? apiKey() : apiKey),
    backgroundBelow: checkInteger('backgroundBelow', options.backgroundBelow, 1, 100_000) ?? 8,
    connectTimeoutMs: timeout('connectTimeoutMs', 10_000),
    responseTimeoutMs: timeout('responseTimeoutMs', 300_000),
    stallTimeoutMs: timeout('stallTimeoutMs', 60_000),
  }
}

/** Throws a `TypeError` for an invalid URL. */
export function toBaseUrl(given: string | URL): URL {
  if (!URL.canParse(String(given)))
    throw new TypeError(
      `Expected \`url\` to be a URL such as http://127.0.0.1:8000, got ${describeValue(given)}`,
    )
  const url = new URL(given)
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new TypeError(`Expected \`url\` to begin with http:// or https://, got ${url.protocol}`)
  if (url.username || url.password || url.search || url.hash)
    throw new TypeError(
      'Expected `url` without a user name, a password, a query or a fragment. See `apiKey`.',
    )
  url.pathname = url.pathname.replace(/\/+$/, '').replace(/\/(?:v1|api)$/, '')
  return url
}

function checkHeaders(headers: unknown): void {
  checkObject('headers', headers)
  for (const [name, value] of Object.entries(headers as object)) {
    if (typeof value !== 'string')
      throw new TypeError(`Expected \`headers['${name}']\` to be a string, got ${describeValue(value)}`)
  }
  // Throws for an invalid name or value. It does not name the value, which may be a secret.
  new Headers(headers as Record<string, string>)
}

function toModels(models: UpstreamOptions['models']): ResolvedUpstreamOptions['models'] {
  if (models === undefined) return undefined
  if (Array.isArray(models)) {
    if (!models.every((one) => typeof one === 'string' && one !== ''))
      throw new TypeError('Expected `models` to be a list of names')
    return Object.fromEntries(models.map((name) => [name, {}]))
  }
  checkObject('models', models)
  for (const [name, settings] of Object.entries(models)) {
    const option = `models['${name}']`
    checkObject(option, settings)
    checkKeys(`${option}.`, settings, ['contextSize', 'capabilities'])
    checkInteger(`${option}.contextSize`, settings.contextSize, 16, 1e9)
    const given: unknown = settings.capabilities ?? []
    if (!Array.isArray(given) || !given.every((one) => capabilities.includes(one)))
      throw new TypeError(`Expected \`${option}.capabilities\` to be a list of: ${capabilities.join(', ')}`)
  }
  return models as Readonly<Record<string, UpstreamModelOptions>>
}
