/** Options of the model store and its registries. */
import { homedir } from 'node:os'
import { join } from 'node:path'
import { type ByteSize, toBytes } from '../units.ts'
import { checkKeys, describeValue, parseBoolean, parseOption, trimVariable } from './check.ts'
import { type RegistryLogin, type ResolvedCredentials, resolveCredentials } from './registry-credentials.ts'

/** Where models come from, and how much disk space they may take. */
export interface StoreOptions {
  /**
   * Registries for pulls and pushes, as `host` or `host:port`. Requests to them use https, and never go to
   * private addresses. If `$HTTPS_PROXY` or `$HTTP_PROXY` names a proxy, and `$NO_PROXY` no exception, the proxy
   * resolves the names, and must refuse private addresses itself.
   *
   * @default ['registry.ollama.ai', 'hf.co', 'huggingface.co']
   */
  registries?: readonly string[] | undefined

  /**
   * Further registries, which may have private addresses. Requests to them use http if a pull or push sets
   * `insecure`, else https.
   *
   * @default none
   */
  privateRegistries?: readonly string[] | undefined

  /**
   * Credentials for these registries: the path of a file in the format of `~/.docker/config.json`, or credentials by
   * `host` or `host:port`. They are sent over https, and to this host only. To send them over http, write
   * `http://host:port`.
   *
   * @default the file `$REGISTRY_AUTH_FILE`, else none; for Ollama's registry, the key `~/.ollama/id_ed25519`
   */
  credentials?: string | Readonly<Record<string, RegistryLogin>> | undefined

  /**
   * Maximum size of all blobs in the folder for new models: bytes, or `'200gb'`. A model that would exceed
   * this size is rejected. Processes that share the folder share the limit. A download reserves its size
   * before it starts. An upload is checked when it ends.
   *
   * @default the size of the disk
   */
  maxBytes?: ByteSize | undefined

  /**
   * Whether replacing a model removes blobs that no model uses any more. Deleting a model always removes
   * them.
   *
   * @default the opposite of `$OLLAMA_NOPRUNE`, else true
   */
  prune?: boolean | undefined
}

const publicRegistries = ['registry.ollama.ai', 'hf.co', 'huggingface.co']

export interface ResolvedStoreOptions {
  readonly registries: {
    readonly hosts: readonly string[]
    readonly privateHosts: readonly string[]
    readonly keyFile: string
    readonly credentials: ResolvedCredentials
    /** Values of `$HTTPS_PROXY`, `$HTTP_PROXY` and `$NO_PROXY`. */
    readonly proxy: {
      readonly https: string | undefined
      readonly http: string | undefined
      readonly none: string | undefined
    }
  }
  readonly maxBytes: number
  readonly prune: boolean
}

export function resolveStoreOptions(
  options: StoreOptions = {},
  environment: NodeJS.ProcessEnv,
): ResolvedStoreOptions {
  checkKeys('store.', options, ['registries', 'privateRegistries', 'credentials', 'maxBytes', 'prune'])
  const { registries = publicRegistries, privateRegistries = [], maxBytes, prune } = options
  if (prune !== undefined && typeof prune !== 'boolean')
    throw new TypeError(`Expected \`store.prune\` to be a boolean, got ${describeValue(prune)}`)
  const hosts = checkHosts('store.registries', registries)
  const privateHosts = checkHosts('store.privateRegistries', privateRegistries)
  return {
    registries: {
      hosts,
      privateHosts,
      credentials: resolveCredentials(options.credentials, [...hosts, ...privateHosts], environment),
      // The `ollama` command uses the same key. Users register its public half with their registry accounts.
      keyFile: join(homedir(), '.ollama', 'id_ed25519'),
      proxy: readProxies(environment),
    },
    maxBytes:
      maxBytes === undefined
        ? Number.POSITIVE_INFINITY
        : parseOption('store.maxBytes', () => toBytes(maxBytes)),
    prune: prune ?? !parseBoolean('$OLLAMA_NOPRUNE', trimVariable(environment.OLLAMA_NOPRUNE)),
  }
}

/** Reads the names in both cases, like most programs. */
function readProxies(environment: NodeJS.ProcessEnv): ResolvedStoreOptions['registries']['proxy'] {
  const read = (name: string) => environment[name.toLowerCase()] || environment[name] || undefined
  // In a CGI program, `HTTP_PROXY` is the header `Proxy` of a client (httpoxy).
  const http = environment.REQUEST_METHOD ? environment.http_proxy || undefined : read('HTTP_PROXY')
  return { https: read('HTTPS_PROXY'), http, none: read('NO_PROXY') }
}

export function checkHosts(option: string, value: readonly string[]): readonly string[] {
  const isHost = (one: unknown): boolean =>
    typeof one === 'string' && /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i.test(one)
  if (Array.isArray(value) && value.every(isHost)) return value.map((one) => one.toLowerCase())
  throw new TypeError(
    `Expected \`${option}\` to be a list of hosts such as 'example.com' or 'example.com:5000', got ${JSON.stringify(value)}`,
  )
}
