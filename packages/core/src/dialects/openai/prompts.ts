/**
 * Routes that show how a model reads a prompt: its tokens, and the text that its template renders. The model evaluates
 * nothing. Shape: llama.cpp's server, "POST /tokenize", "POST /detokenize", "POST /apply-template" and
 * "POST /v1/chat/completions/input_tokens".
 */
import { z } from 'zod'
import { areTokens, limits } from '../../engine/request-limits.ts'
import { json } from '../../http/respond.ts'
import type { ModelHandler } from '../dialect.ts'
import { optional } from '../fields.ts'
import { parse } from '../parse.ts'
import { formatIssue } from './errors.ts'
import { ChatCompletionRequest } from './schema.ts'
import { toGenerateRequest } from './translate.ts'

const model = z.string().min(1).max(limits.modelLength)

const TokenizeBody = z.object({
  model,
  content: z.string(),
  add_special: optional(z.boolean()),
  parse_special: optional(z.boolean()),
  with_pieces: optional(z.boolean()),
})

const DetokenizeBody = z.object({
  model,
  tokens: z.custom<readonly number[]>(areTokens, { params: { issue: 'type' }, error: 'expected token ids.' }),
})

/** `POST /tokenize` */
export const tokenize: ModelHandler = async ({ request, llm }) => {
  const { model, content, ...body } = parse(TokenizeBody, await request.json(), formatIssue)
  const { add_special: addSpecial = false, parse_special: parseSpecial = true } = body
  const { signal } = request
  const tokens = await llm.tokenize({ model, text: content, addSpecial, parseSpecial }, { signal })
  if (!body.with_pieces || tokens.length === 0) return json({ tokens })
  const pieces = await llm.tokenPieces({ model, tokens }, { signal })
  return json({ tokens: tokens.map((id, index) => ({ id, piece: pieces[index] })) })
}

/** `POST /detokenize` */
export const detokenize: ModelHandler = async ({ request, llm }) => {
  const { model, tokens } = parse(DetokenizeBody, await request.json(), formatIssue)
  return json({ content: await llm.detokenize({ model, tokens }, { signal: request.signal }) })
}

/** `POST /apply-template` */
export const applyTemplate: ModelHandler = async ({ request, llm }) => {
  const body = parse(ChatCompletionRequest, await request.json(), formatIssue)
  return json({ prompt: await llm.render(toGenerateRequest(body), { signal: request.signal }) })
}

/** `POST /v1/chat/completions/input_tokens` */
export const countChatTokens: ModelHandler = async ({ request, llm }) => {
  const body = parse(ChatCompletionRequest, await request.json(), formatIssue)
  const count = await llm.countTokens(toGenerateRequest(body), { signal: request.signal })
  return json({ object: 'response.input_tokens', input_tokens: count })
}
