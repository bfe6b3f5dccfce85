/** The entry point `@modelmount/core/upstream`: engines whose models run on other servers. */
import type { Engine } from '../engine.ts'
import { AnthropicApi } from './anthropic/anthropic-api.ts'
import { OllamaApi } from './ollama/ollama-api.ts'
import { OpenAiApi } from './openai/openai-api.ts'
import { type ApiName, resolveUpstreamOptions, type UpstreamOptions } from './options.ts'
import type { UpstreamApi } from './upstream-api.ts'
import { UpstreamEngine } from './upstream-engine.ts'

export type { ApiName, UpstreamModelOptions, UpstreamOptions } from './options.ts'

const apis: Readonly<Record<ApiName, new () => UpstreamApi>> = {
  openai: OpenAiApi,
  anthropic: AnthropicApi,
  ollama: OllamaApi,
}

/**
 * Creates an engine for the models of another server. It sends nothing before the first call. Close it with
 * `llm.close()`. Throws a `TypeError` for an invalid option.
 */
export function upstreamEngine(options: UpstreamOptions): Engine {
  const resolved = resolveUpstreamOptions(options)
  return new UpstreamEngine(resolved, new apis[resolved.api]())
}
