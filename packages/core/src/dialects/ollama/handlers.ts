import type * as neutral from '../../engine/request.ts'
import { invalidRequest, modelNotFound } from '../../errors.ts'
import type { HttpResponse } from '../../http/message.ts'
import { json } from '../../http/respond.ts'
import { ndjson } from '../../http/streams.ts'
import type { Llm } from '../../llm.ts'
import type { ModelDetails } from '../../models/gguf/details.ts'
import type { Call, Handler } from '../dialect.ts'
import { withReuse } from '../reuse.ts'
import { read } from './body.ts'
import { loadOrUnload } from './loading.ts'
import { detailsOf } from './models.ts'
import {
  acknowledgement,
  asMessage,
  asResponse,
  completion,
  heartbeat,
  lines,
  type Piece,
  rendered,
} from './render.ts'
import { ChatRequest, GenerateRequest } from './schema.ts'
import { toConversation, toGenerateRequest, toPrompt } from './translate.ts'

/** `POST /api/generate` */
export const generate: Handler = async (call) => {
  const body = await read(call.request, GenerateRequest, 'GenerateRequest')
  if (!body.model) throw modelNotFound('')
  const prompt = toPrompt(body)
  return body.prompt ? answer(call, body, prompt, asResponse) : acknowledge(call, body, asResponse)
}

/** `POST /api/chat` */
export const chat: Handler = async (call) => {
  const body = await read(call.request, ChatRequest, 'ChatRequest')
  const { model, messages = [] } = body
  if (!model) throw invalidRequest('model is required', { param: 'model' })
  if (messages.length === 0) return acknowledge(call, body, asMessage)
  return answer(call, body, toConversation(body), asMessage)
}

type Body = GenerateRequest | ChatRequest

async function answer(
  call: Call,
  body: Body,
  input: neutral.GenerateRequest['input'],
  piece: Piece,
): Promise<HttpResponse> {
  const startedAt = performance.now()
  const { llm, caller, onError } = call
  const { signal } = call.request
  const { model = '', stream = true, options } = body
  const details = await writerDetails(llm, model, piece)
  const asked = toGenerateRequest(body, input, details)
  if (body._debug_render_only) return json(rendered(model, await llm.render(asked, { signal }), piece))
  if (options?.num_predict === 0) return acknowledge(call, body, piece)

  const returnTokens = input.kind !== 'chat' && !('raw' in body && body.raw)
  const generation = await llm.generate(
    { ...asked, ...(returnTokens && { returnTokens }) },
    { signal, caller, stream },
  )
  const response = stream
    ? ndjson(lines(generation, startedAt, piece), { onError, heartbeat: heartbeat(model, piece) })
    : json(await completion(generation, startedAt, piece))
  return withReuse(response, [generation])
}

/** What a call without a question is for: to load a model, or to let go of any. */
async function acknowledge(call: Call, body: Body, piece: Piece): Promise<HttpResponse> {
  const { model = '', keep_alive: keepAlive } = body
  if (keepAlive !== 0) await writerDetails(call.llm, model, piece)
  return json(acknowledgement(model, await loadOrUnload(call, body), piece))
}

/** Throws `invalid_request` for a model that only reads. */
async function writerDetails(llm: Llm, model: string, piece: Piece): Promise<ModelDetails | undefined> {
  const details = await detailsOf(llm, model)
  if (details?.capabilities.includes('completion') !== false) return details
  throw invalidRequest(`"${model}" does not support ${piece === asMessage ? 'chat' : 'generate'}`)
}
