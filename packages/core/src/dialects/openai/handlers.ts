import type { HttpResponse } from '../../http/message.ts'
import { json } from '../../http/respond.ts'
import { sse } from '../../http/streams.ts'
import { groupInto } from '../../util/group-into.ts'
import type { ModelCall, ModelHandler } from '../dialect.ts'
import { parse } from '../parse.ts'
import { withReuseHeader } from '../reuse-header.ts'
import { collectChoices, collectConcurrently, startChoices } from './choices.ts'
import { formatIssue } from './errors.ts'
import { createBodyFieldMapper, withFieldNames } from './field-names.ts'
import { findConstraint } from './formats.ts'
import { renderChunks, renderCompletion } from './render.ts'
import { renderTextChunks, renderTextCompletion } from './render-text.ts'
import { answersPerPrompt, ChatCompletionRequest, CompletionRequest } from './schema.ts'
import { completionFormatNames, endUserOf, toGenerateRequest, toTextRequests } from './translate.ts'

/** `POST /v1/chat/completions` */
export const chatCompletions: ModelHandler = async (call) => {
  const body = parse(ChatCompletionRequest, await call.request.json(), formatIssue)
  return withFieldNames(mapperOf(body), (call) => completeChat(body, call))(call)
}

async function completeChat(
  body: ChatCompletionRequest,
  { request, llm, onError }: ModelCall,
): Promise<HttpResponse> {
  const stream = body.stream ?? false
  const options = { signal: request.signal, stream, endUser: endUserOf(body) }
  const choices = await startChoices(llm, toGenerateRequest(body), body.n ?? 1, options)
  const response = stream
    ? sse(renderChunks(choices, body), { onError })
    : json(renderCompletion(await collectChoices(choices), body))
  return withReuseHeader(response, [choices[0]])
}

/** `POST /v1/completions` */
export const completions: ModelHandler = async (call) => {
  const body = parse(CompletionRequest, await call.request.json(), formatIssue)
  return withFieldNames(mapperOf(body), (call) => completeTexts(body, call))(call)
}

const limitFields = ['n_predict', 'max_completion_tokens', 'max_tokens'] as const

const mapperOf = (body: CompletionRequest | ChatCompletionRequest) =>
  createBodyFieldMapper({
    limit: limitFields.find((field) => (body as Partial<ChatCompletionRequest>)[field] !== undefined),
    constraint: findConstraint({ ...body, format: body.response_format }, completionFormatNames),
  })

async function completeTexts(
  body: CompletionRequest,
  { request: { signal }, llm, onError }: ModelCall,
): Promise<HttpResponse> {
  const stream = body.stream ?? false
  const perPrompt = answersPerPrompt(body)
  const requests = toTextRequests(body)
  const echoes: string[] = []
  for (const prompt of body.prompt)
    echoes.push(body.echo ? await toText(prompt, body.model, { llm, signal }) : '')
  const group = await llm.generateGroup(requests, {
    ...{ signal, stream, endUser: endUserOf(body) },
    answersPerPrompt: perPrompt,
  })
  if (stream) {
    const [first, ...others] = group.startInOrder()
    const begun = await first
    const choices = [...(begun ? [begun] : []), ...others]
    const frames = renderTextChunks(groupInto(choices, perPrompt), echoes, body)
    return withReuseHeader(sse(frames, { onError }), begun ? [begun] : [])
  }
  const start = (index: number, signal: AbortSignal) => group.start(index, signal)
  const finished = await collectConcurrently(requests.length, start, signal)
  return withReuseHeader(
    json(renderTextCompletion(finished, echoes, body)),
    finished.filter((_, index) => index % perPrompt === 0).map(({ generation }) => generation),
  )
}

/** Returns the text of a prompt, for `echo`. */
async function toText(
  prompt: CompletionRequest['prompt'][number],
  model: string,
  { llm, signal }: Pick<ModelCall, 'llm'> & { readonly signal: AbortSignal },
): Promise<string> {
  let text = ''
  for (const piece of prompt)
    text += typeof piece === 'string' ? piece : await llm.detokenize({ model, tokens: piece }, { signal })
  return text
}
