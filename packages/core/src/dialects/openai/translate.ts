/** From the OpenAI API to the neutral language. */
import type { GenerateRequest, Message, Sampling } from '../../engine/request.ts'
import { toLocalSampling } from './local-options.ts'
import type * as schema from './schema.ts'

export function toGenerateRequest(body: schema.ChatCompletionRequest): GenerateRequest {
  const maxTokens = body.max_completion_tokens ?? body.max_tokens
  const stop = (typeof body.stop === 'string' ? [body.stop] : (body.stop ?? [])).filter((text) => text !== '')
  return {
    model: body.model,
    input: { kind: 'chat', messages: (body.messages as schema.Message[]).map(toMessage) },
    ...(maxTokens !== undefined && { maxTokens }),
    ...(stop.length > 0 && { stop }),
    sampling: toSampling(body),
  }
}

function toMessage({ role, content }: schema.Message): Message {
  return {
    role: role === 'developer' ? 'system' : role,
    content: typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? []),
  }
}

function toSampling(body: schema.ChatCompletionRequest): Sampling {
  const local = toLocalSampling(body)
  const given = {
    ...local,
    temperature: body.temperature ?? 1,
    topP: body.top_p ?? 1,
    topK: body.top_k,
    minP: body.min_p,
    seed: body.seed,
    repeatPenalty: body.repeat_penalty ?? local.repeatPenalty,
    presencePenalty: body.presence_penalty,
    frequencyPenalty: body.frequency_penalty,
    logitBias:
      body.logit_bias &&
      Object.entries(body.logit_bias).map(([token, bias]) => [Number(token), bias] as const),
  }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
}
