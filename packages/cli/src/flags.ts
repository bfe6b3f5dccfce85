/** Names the flags of `modelmount serve` in texts that name options of `createLlm()`. */
import type { LlmOptions } from '@modelmount/core'

/** Maps options of `createLlm()` to flags. */
const flags: Readonly<Record<string, string>> = {
  models: '--models',
  auth: '--auth',
  accessLog: '--access-log',
  origins: '--origins',
  database: '--data',
  engines: '--upstream',
  prices: '--prices',
  maxQueued: '--max-queued',
  queueTimeout: '--queue-timeout',
  'local.threads': '--threads',
  'local.contextSize': '--context',
  'local.maxContextSize': '--max-context',
  'local.parallel': '--parallel',
  'local.maxLoadedModels': '--max-loaded',
  'local.gpuLayers': '--gpu-layers',
  'local.flashAttention': '--flash-attention',
  'local.kvCacheType': '--kv-type',
  'local.keepAlive': '--keep-alive',
  'local.reloadCooldown': '--reload-cooldown',
  'local.environment': '--pass-env',
  'store.registries': '--registry',
  'store.privateRegistries': '--private-registry',
  'store.maxBytes': '--store-max',
}

/** Options without a flag, or the groups of such options. A configuration file can set them. */
const optionsOfFile: ReadonlySet<string> = new Set<keyof LlmOptions>([
  'aliases',
  'batches',
  'bodies',
  'engine',
  'imageHosts',
  'local',
  'logger',
  'maxAdmitted',
  'maxFailedAuthentications',
  'modelLimits',
  'modelSettings',
  'outputBuffer',
  'responses',
  'scopes',
  'spendingWarnings',
  'store',
  'tiers',
  'usage',
])

/** Rewrites a text for apps that call `createLlm()` into one for the command line: each option gets its flag. */
export const withFlags = (text: string): string =>
  text
    .replace(/In the app, set `auth: 'host'`.*$/s, 'To serve other callers, require API keys: --auth keys.')
    .replace(/createLlm\(\{ origins: \['([^']*)'\] \}\)/, '--origins $1')
    .replaceAll(/option `\w+` of createLlm\(\), or (?=modelmount serve --)/g, '')
    .replaceAll(' of createLlm()', '')
    .replaceAll(/In the app, (.)/g, (_, letter: string) => letter.toUpperCase())
    .replaceAll(/`([a-z]\w*(?:\.\w+)*)[^`]*`(?! \(--)/g, (quoted, option: string) => {
      const flag = flagOf(option)
      return flag === undefined ? quoted : `${quoted} (${flag})`
    })

function flagOf(option: string): string | undefined {
  const [group = ''] = option.split('.')
  return flags[option] ?? (optionsOfFile.has(group) ? '--config' : undefined)
}

/**
 * Rethrows an error about options. Its message then names the flags, and the configuration file if the value is
 * from the file.
 *
 * @param isFromFile whether the value of an option, such as `local.keepAlive`, is from the file
 */
export function nameFlags(
  error: Error,
  file?: string,
  isFromFile: (option: string) => boolean = () => false,
): never {
  const [, option] = /`([a-z]\w*(?:\.\w+)*)/.exec(error.message) ?? []
  const prefix = file !== undefined && option !== undefined && isFromFile(option) ? `${file}: ` : ''
  error.message = prefix + withFlags(error.message)
  throw error
}
