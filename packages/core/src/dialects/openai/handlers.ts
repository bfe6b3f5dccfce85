import { collect } from '../../engine/events.ts'
import type { HttpResponse } from '../../http/message.ts'
import { json } from '../../http/respond.ts'
import { sse } from '../../http/streams.ts'
import type { ModelCall, ModelHandler } from '../dialect.ts'
import { parse } from '../parse.ts'
import { withReuseHeader } from '../reuse-header.ts'
import { formatIssue } from './errors.ts'
import { createBodyFieldMapper, mapErrorField } from './field-names.ts'
import { type CompletionStarter, collectConcurrently, streamInOrder } from './multi-prompt.ts'
import { renderChunks, renderCompletion } from './render.ts'
import { renderTextChunks, renderTextCompletion, type TextCompletion } from './render-text.ts'
import { ChatCompletionRequest, CompletionRequest } from './schema.ts'
import { endUserOf, toGenerateRequest, toTextRequests } from './translate.ts'

/** `POST /v1/chat/completions` */
export const chatCompletions: ModelHandler = async ({ request, llm, onError }) => {
  const body = parse(ChatCompletionRequest, await request.json(), formatIssue)
  const stream = body.stream ?? false
  const options = { signal: request.signal, stream, endUser: endUserOf(body) }
  const generation = await llm.generate(toGenerateRequest(body), options).catch((cause: unknown) => {
    throw mapErrorField(createBodyFieldMapper(body), cause)
  })

  const response = stream
    ? sse(renderChunks(generation, body), { onError })
    : json(renderCompletion(generation, await collect(generation), body))
  return withReuseHeader(response, [generation])
}

/** `POST /v1/completions` */
export const completions: ModelHandler = async (call) => {
  const body = parse(CompletionRequest, await call.request.json(), formatIssue)
  return completeTexts(body, call).catch((cause: unknown) => {
    throw mapErrorField(createBodyFieldMapper(body), cause)
  })
}

async function completeTexts(
  body: CompletionRequest,
  { request, llm, onError }: ModelCall,
): Promise<HttpResponse> {
  const stream = body.stream ?? false
  const requests = toTextRequests(body)
  const echoes: string[] = []
  for (const index of requests.keys()) echoes.push(await echoOf(body, index, { llm, signal: request.signal }))
  const group = await llm.generateGroup(requests, {
    signal: request.signal,
    stream,
    endUser: endUserOf(body),
  })
  const inOrder = stream ? group.startInOrder() : []
  const starters = requests.map(
    (_, index): CompletionStarter =>
      async (signal) => ({
        echo: echoes[index] ?? '',
        generation: await (inOrder[index] ?? group.start(index, signal)),
      }),
  )
  if (stream) {
    const { started, texts } = await streamInOrder(starters, request.signal)
    return withReuseHeader(sse(renderTextChunks(texts, body), { onError }), generationsOf(started))
  }
  const results = await collectConcurrently(starters, request.signal)
  return withReuseHeader(json(renderTextCompletion(results, body)), generationsOf(results))
}

const generationsOf = (texts: readonly TextCompletion[]) => texts.map(({ generation }) => generation)

/** Returns the text of a prompt if `echo` repeats it before the completion, else an empty text. */
async function echoOf(
  { model, prompt, echo }: CompletionRequest,
  index: number,
  { llm, signal }: Pick<ModelCall, 'llm'> & { readonly signal: AbortSignal },
): Promise<string> {
  const promptPart = (echo && prompt[index]) || ''
  return typeof promptPart === 'string'
    ? promptPart
    : llm.detokenize({ model, tokens: promptPart }, { signal })
}
