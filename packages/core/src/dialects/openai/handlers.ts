import { collect } from '../../engine/events.ts'
import { json } from '../../http/respond.ts'
import { sse } from '../../http/streams.ts'
import type { Call, Handler } from '../dialect.ts'
import { parse } from '../parse.ts'
import { withReuse } from '../reuse.ts'
import { atOnce, inTurn, type Question } from './answers.ts'
import { wording } from './errors.ts'
import { chunks, completion } from './render.ts'
import { type Text, textChunks, textCompletion } from './render-text.ts'
import { ChatCompletionRequest, CompletionRequest } from './schema.ts'
import { toGenerateRequest, toTextRequests } from './translate.ts'

/** `POST /v1/chat/completions` */
export const chatCompletions: Handler = async ({ request, llm, caller, onError }) => {
  const body = parse(ChatCompletionRequest, await request.json(), wording)
  const stream = body.stream ?? false
  const generation = await llm.generate(toGenerateRequest(body), {
    signal: request.signal,
    caller,
    stream,
  })

  const response = stream
    ? sse(chunks(generation, body), { onError })
    : json(completion(generation, await collect(generation), body))
  return withReuse(response, [generation])
}

/** `POST /v1/completions` */
export const completions: Handler = async (call) => {
  const { request, llm, caller, onError } = call
  const body = parse(CompletionRequest, await request.json(), wording)
  const stream = body.stream ?? false
  const requests = toTextRequests(body)
  const echoes: string[] = []
  for (const index of requests.keys())
    echoes.push(await echoOf(body, index, { llm, caller, signal: request.signal }))
  const together = { requests, signal: request.signal }
  const questions = requests.map(
    (asked, index): Question =>
      async (signal) => ({
        echo: echoes[index] ?? '',
        generation: await llm.generate(asked, { signal, caller, stream, together }),
      }),
  )
  if (stream) {
    const { begun, texts } = await inTurn(questions, request.signal)
    return withReuse(sse(textChunks(texts, body), { onError }), generationsOf(begun))
  }
  const texts = await atOnce(questions, request.signal)
  return withReuse(json(textCompletion(texts, body)), generationsOf(texts))
}

const generationsOf = (texts: readonly Text[]) => texts.map(({ generation }) => generation)

/** What is said again in front of an answer. */
async function echoOf(
  { model, prompt, echo }: CompletionRequest,
  index: number,
  { llm, ...call }: Pick<Call, 'llm' | 'caller'> & { readonly signal: AbortSignal },
): Promise<string> {
  const said = (echo && prompt[index]) || ''
  return typeof said === 'string' ? said : llm.detokenize({ model, tokens: said }, call)
}
