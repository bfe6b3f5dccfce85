/** Creates an upstream engine with the API that its options name. */
import { AnthropicApi } from './anthropic/anthropic-api.ts'
import { ModelmountApi } from './modelmount/modelmount-api.ts'
import { OllamaApi } from './ollama/ollama-api.ts'
import { OpenAiApi } from './openai/openai-api.ts'
import type { ResolvedUpstreamOptions } from './options.ts'
import type { UpstreamApi } from './upstream-api.ts'
import { UpstreamEngine } from './upstream-engine.ts'

export const createUpstream = (options: ResolvedUpstreamOptions): UpstreamEngine =>
  new UpstreamEngine(options, createApi(options))

function createApi({ api, server }: ResolvedUpstreamOptions): UpstreamApi {
  if (api === 'anthropic') return new AnthropicApi()
  if (api === 'modelmount') return new ModelmountApi()
  return api === 'ollama' ? new OllamaApi() : new OpenAiApi(server)
}
