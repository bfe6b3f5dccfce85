/** The entry point `@modelmount/core/upstream`: engines whose models run on other servers. */
import type { Engine } from '../engine.ts'
import { AnthropicApi } from './anthropic/anthropic-api.ts'
import { OllamaApi } from './ollama/ollama-api.ts'
import { OpenAiApi } from './openai/openai-api.ts'
import { type ResolvedUpstreamOptions, resolveUpstreamOptions, type UpstreamOptions } from './options.ts'
import type { UpstreamApi } from './upstream-api.ts'
import { UpstreamEngine } from './upstream-engine.ts'

export type { ApiName, OpenAiServer, UpstreamModelOptions, UpstreamOptions } from './options.ts'

/**
 * Creates an engine for the models of another server. It sends nothing before the first call. Close it with
 * `llm.close()`. Throws a `TypeError` for an invalid option.
 */
export function upstreamEngine(options: UpstreamOptions): Engine {
  const resolved = resolveUpstreamOptions(options)
  return new UpstreamEngine(resolved, createApi(resolved))
}

function createApi({ api, server }: ResolvedUpstreamOptions): UpstreamApi {
  if (api === 'anthropic') return new AnthropicApi()
  return api === 'ollama' ? new OllamaApi() : new OpenAiApi(server)
}
