/** How models are kept, and where they come from. */
import { homedir } from 'node:os'
import { join } from 'node:path'
import { type ByteSize, toBytes } from '../units.ts'
import { checkKeys, describeValue, parseBoolean, trimVariable } from './check.ts'

export interface StoreOptions {
  /**
   * Registries that may be asked for models, as `host` or `host:port`. They are spoken to over https, and not at private
   * addresses.
   *
   * @default ['registry.ollama.ai', 'hf.co', 'huggingface.co']
   */
  registries?: readonly string[] | undefined

  /**
   * Registries of your own, beside those: they may lie at private addresses, and are spoken to over http where a call says
   * `insecure`.
   *
   * @default none
   */
  privateRegistries?: readonly string[] | undefined

  /**
   * What the blobs in the folder that is written to take at most: bytes, or `'200gb'`. What would be more is refused. Processes
   * that share the folder share the limit: a download claims what it needs, and of uploads that together are too much none that
   * ends later is kept.
   *
   * @default as much as the disk holds
   */
  maxBytes?: ByteSize | undefined

  /**
   * Whether blobs are removed that no model has any more once one is replaced. What is deleted, is in any case.
   *
   * @default not `$OLLAMA_NOPRUNE`
   */
  prune?: boolean | undefined
}

const publicRegistries = ['registry.ollama.ai', 'hf.co', 'huggingface.co']

export interface ResolvedStoreOptions {
  readonly registries: {
    readonly hosts: readonly string[]
    readonly privateHosts: readonly string[]
    readonly keyFile: string
  }
  readonly maxBytes: number
  readonly prune: boolean
}

export function resolveStoreOptions(
  options: StoreOptions = {},
  environment: NodeJS.ProcessEnv,
): ResolvedStoreOptions {
  checkKeys('store.', options, ['registries', 'privateRegistries', 'maxBytes', 'prune'])
  const { registries = publicRegistries, privateRegistries = [], maxBytes, prune } = options
  if (prune !== undefined && typeof prune !== 'boolean')
    throw new TypeError(`Expected \`store.prune\` to be a boolean, got ${describeValue(prune)}`)
  return {
    registries: {
      hosts: checkHosts('store.registries', registries),
      privateHosts: checkHosts('store.privateRegistries', privateRegistries),
      // As the `ollama` command made it: its public half is what people register with their accounts.
      keyFile: join(homedir(), '.ollama', 'id_ed25519'),
    },
    maxBytes: maxBytes === undefined ? Number.POSITIVE_INFINITY : toBytes(maxBytes),
    prune: prune ?? !parseBoolean('$OLLAMA_NOPRUNE', trimVariable(environment.OLLAMA_NOPRUNE)),
  }
}

function checkHosts(option: string, value: readonly string[]): readonly string[] {
  const isHost = (one: unknown): boolean =>
    typeof one === 'string' && /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i.test(one)
  if (Array.isArray(value) && value.every(isHost)) return value.map((one) => one.toLowerCase())
  throw new TypeError(
    `Expected \`${option}\` to be a list of hosts such as 'registry.example.com:5000', got ${JSON.stringify(value)}`,
  )
}
