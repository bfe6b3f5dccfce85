/** The entry point `@modelmount/core/upstream`: engines whose models run on other servers. */
import type { Engine } from '../engine.ts'
import { createUpstream } from './create-upstream.ts'
import { resolveUpstreamOptions, type UpstreamOptions } from './options.ts'

export type { ApiName, OpenAiServer, UpstreamModelOptions, UpstreamOptions } from './options.ts'

/**
 * Creates an engine for the models of another server. It sends nothing before the first call. Close it with
 * `llm.close()`. Throws a `TypeError` for an invalid option.
 */
export function upstreamEngine(options: UpstreamOptions): Engine {
  return createUpstream(resolveUpstreamOptions(options))
}
