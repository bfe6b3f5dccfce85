/** Names the flags of `modelmount serve` in texts that name options of `createLlm()`. */

/** Maps options of `createLlm()` to flags. */
const flags: Readonly<Record<string, string>> = {
  models: '--models',
  database: '--data',
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

/** Adds the flag to each option in a text. */
export const withFlags = (text: string): string =>
  text.replaceAll(/`([\w.]+)[^`]*`/g, (quoted, option: string) =>
    flags[option] === undefined ? quoted : `${quoted} (${flags[option]})`,
  )

/** Rethrows an error, after adding the flag to each option in its message. */
export function nameFlags(error: Error): never {
  error.message = withFlags(error.message)
  throw error
}
