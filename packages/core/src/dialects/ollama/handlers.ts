import type { LlmClient } from '../../calls/client.ts'
import type * as neutral from '../../engine/request.ts'
import { invalidRequest, modelNotFound } from '../../errors.ts'
import type { HttpResponse } from '../../http/message.ts'
import { json } from '../../http/respond.ts'
import { ndjson } from '../../http/streams.ts'
import type { ModelDetails } from '../../models/gguf/model-details.ts'
import type { Handler, RouteCall } from '../dialect.ts'
import { withReuseHeader } from '../reuse-header.ts'
import { readBody } from './body.ts'
import { loadOrUnload, watchLoad } from './loading.ts'
import { findDetails } from './models.ts'
import {
  type ContentFormatter,
  formatMessage,
  formatResponse,
  renderAcknowledgement,
  renderCompletion,
  renderHeartbeat,
  renderLines,
  renderLoad,
  renderPrompt,
} from './render.ts'
import { ChatRequest, OllamaGenerateRequest } from './schema.ts'
import { toChatInput, toGenerateRequest, toPrompt } from './translate.ts'

/** `POST /api/generate` */
export const generate: Handler = async (call) => {
  const body = await readBody(call.request, OllamaGenerateRequest, 'GenerateRequest')
  if (!body.model) throw modelNotFound('')
  const prompt = toPrompt(body)
  return body.prompt ? respond(call, body, prompt, formatResponse) : acknowledge(call, body, formatResponse)
}

/** `POST /api/chat` */
export const chat: Handler = async (call) => {
  const body = await readBody(call.request, ChatRequest, 'ChatRequest')
  const { model, messages = [] } = body
  if (!model) throw invalidRequest('model is required', { param: 'model' })
  if (messages.length === 0) return acknowledge(call, body, formatMessage)
  return respond(call, body, toChatInput(body), formatMessage)
}

type ChatOrGenerateRequest = OllamaGenerateRequest | ChatRequest

async function respond(
  call: RouteCall,
  body: ChatOrGenerateRequest,
  input: neutral.GenerateRequest['input'],
  formatContent: ContentFormatter,
): Promise<HttpResponse> {
  const startedAt = performance.now()
  const { llm, onError } = call
  const { signal } = call.request
  const { model = '', stream = true, options, timings_per_token: hasTimings = false } = body
  const details = await requireGenerativeModel(llm, model, formatContent)
  const generateRequest = toGenerateRequest(body, input, details)
  if (body._debug_render_only)
    return json(renderPrompt(model, await llm.render(generateRequest, { signal }), formatContent))
  if (options?.num_predict === 0) return acknowledge(call, body, formatContent)

  const returnTokens = input.kind !== 'chat' && !('raw' in body && body.raw)
  const generation = await llm.generate(
    { ...generateRequest, ...(returnTokens && { returnTokens }) },
    { signal, stream },
  )
  const response = stream
    ? ndjson(renderLines(generation, { startedAt, formatContent, hasTimings }), {
        onError,
        heartbeat: renderHeartbeat(model, formatContent),
      })
    : json(await renderCompletion(generation, { startedAt, formatContent, hasTimings }))
  return withReuseHeader(response, [generation])
}

/** Loads or unloads a model, for requests without a prompt. */
async function acknowledge(
  call: RouteCall,
  body: ChatOrGenerateRequest,
  formatContent: ContentFormatter,
): Promise<HttpResponse> {
  const { model = '', keep_alive: keepAlive, stream = true, return_progress: hasProgress } = body
  if (keepAlive !== 0) await requireGenerativeModel(call.llm, model, formatContent)
  if (stream && hasProgress)
    return ndjson(renderLoad(model, await watchLoad(call, body), formatContent), {
      onError: call.onError,
      heartbeat: renderHeartbeat(model, formatContent),
    })
  return json(renderAcknowledgement(model, await loadOrUnload(call, body), formatContent))
}

/** Throws `invalid_request` for a pooling model. */
async function requireGenerativeModel(
  llm: LlmClient,
  model: string,
  formatContent: ContentFormatter,
): Promise<ModelDetails | undefined> {
  const details = await findDetails(llm, model)
  if (details?.capabilities.includes('completion') !== false) return details
  throw invalidRequest(`"${model}" does not support ${formatContent === formatMessage ? 'chat' : 'generate'}`)
}
