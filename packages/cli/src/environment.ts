/** The environment variables that commands read: for `--help`, and for their precedence over a configuration file. */
import { table } from './format/table.ts'

/** Which commands read a variable. `client`: those that call a server. `database`: those that open a database. */
type Reader = 'serve' | 'client' | 'run' | 'database'

interface Variable {
  readonly readers: readonly Reader[]
  readonly meaning: string
  /** The option of `createLlm()` that core reads from the variable if the option is not set. */
  readonly option?: string
}

export const variables: Readonly<Record<string, Variable>> = {
  OLLAMA_HOST: {
    readers: ['serve', 'client', 'run'],
    meaning: 'host:port where the server listens, and which commands call (default: 127.0.0.1:11434)',
  },
  OLLAMA_MODELS: {
    readers: ['serve', 'client', 'run', 'database'],
    meaning: 'folder of models, and of modelmount.db without --data (default: ~/.ollama/models)',
    option: 'models',
  },
  OLLAMA_ORIGINS: {
    readers: ['serve'],
    meaning: 'further origins of web pages that may call the server, separated by commas',
  },
  OLLAMA_CONTEXT_LENGTH: {
    readers: ['serve'],
    meaning: 'context size in tokens (default: 4096)',
    option: 'local.contextSize',
  },
  OLLAMA_NUM_PARALLEL: {
    readers: ['serve'],
    meaning: 'parallel answers per model (default: 4)',
    option: 'local.parallel',
  },
  OLLAMA_MAX_LOADED_MODELS: {
    readers: ['serve'],
    meaning: 'models in memory at once (default: 3)',
    option: 'local.maxLoadedModels',
  },
  OLLAMA_MAX_QUEUE: {
    readers: ['serve'],
    meaning: 'calls that may wait for each model (default: 512)',
    option: 'maxQueued',
  },
  OLLAMA_KEEP_ALIVE: {
    readers: ['serve'],
    meaning: 'idle timeout of a loaded model: 10m, seconds, or -1 for none (default: 5m)',
    option: 'local.keepAlive',
  },
  OLLAMA_FLASH_ATTENTION: {
    readers: ['serve'],
    meaning: '1 or 0: whether to use flash attention (default: where supported)',
    option: 'local.flashAttention',
  },
  OLLAMA_KV_CACHE_TYPE: {
    readers: ['serve'],
    meaning: 'KV cache data type: f16, q8_0 or q4_0 (default: f16)',
    option: 'local.kvCacheType',
  },
  OLLAMA_NOPRUNE: {
    readers: ['serve'],
    meaning: '1 keeps the files of a model that is replaced',
    option: 'store.prune',
  },
  REGISTRY_AUTH_FILE: {
    readers: ['serve'],
    meaning: 'file with credentials for registries, in the format of ~/.docker/config.json',
    option: 'store.credentials',
  },
  OLLAMA_NOHISTORY: { readers: ['run'], meaning: '1 does not store the lines of conversations' },
  MODELMOUNT_API_KEY: { readers: ['client', 'run'], meaning: 'API key to send to the server' },
  HTTPS_PROXY: { readers: ['serve'], meaning: 'proxy for pulls and pushes over https' },
  HTTP_PROXY: { readers: ['serve'], meaning: 'proxy for pulls and pushes over http' },
  NO_PROXY: { readers: ['serve'], meaning: 'hosts without a proxy, separated by commas' },
  PGPASSWORD: {
    readers: ['serve', 'database'],
    meaning: 'password for a PostgreSQL URL, which keeps it out of the list of processes',
  },
  'MODELMOUNT_UPSTREAM_<NAME>_KEY': {
    readers: ['serve'],
    meaning: 'API key for the server of --upstream NAME=URL. Other characters than letters and digits are _',
  },
  'MODELMOUNT_UPSTREAM_<NAME>_KEY_FILE': { readers: ['serve'], meaning: 'file with that API key' },
  NO_COLOR: { readers: ['client', 'run'], meaning: 'any value turns colors off' },
  XDG_RUNTIME_DIR: {
    readers: ['serve'],
    meaning: 'parent of the folder for the sockets of model processes (default: a temporary folder)',
  },
}

/** The variable with the API key for the server of an `--upstream`. */
export const upstreamKeyVariable = (upstream: string): string =>
  `MODELMOUNT_UPSTREAM_${upstream.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')}_KEY`

/** The section of `--help` with the variables that a command reads. @param reader @default all commands */
export function environmentHelp(reader?: Reader): string {
  const rows = Object.entries(variables)
    .filter(([, { readers }]) => reader === undefined || readers.includes(reader))
    .map(([name, { meaning }]) => [name, meaning])
  return `\nEnvironment variables:\n${table(rows, '  ').trimEnd()}`
}

/** Names of the options that the environment sets, such as `local.keepAlive`. */
export const optionsInEnvironment = (environment: NodeJS.ProcessEnv): readonly string[] =>
  Object.entries(variables).flatMap(([name, { option }]) =>
    option !== undefined && environment[name]?.trim() ? [option] : [],
  )
