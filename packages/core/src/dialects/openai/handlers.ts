import { collect } from '../../engine/events.ts'
import type { GenerateRequest } from '../../engine/request.ts'
import type { Generation } from '../../generate.ts'
import { json } from '../../http/respond.ts'
import { sse } from '../../http/streams.ts'
import type { Call, Handler } from '../dialect.ts'
import { parse } from '../parse.ts'
import { wording } from './errors.ts'
import { chunks, completion } from './render.ts'
import { textChunks, textCompletion } from './render-text.ts'
import { ChatCompletionRequest, CompletionRequest } from './schema.ts'
import { toGenerateRequest, toTextRequests } from './translate.ts'

/** `POST /v1/chat/completions` */
export const chatCompletions: Handler = async ({ request, llm, caller, onError }) => {
  const body = parse(ChatCompletionRequest, await request.json(), wording)
  const stream = body.stream ?? false
  const generation = await llm.generate(toGenerateRequest(body), { signal: request.signal, caller, stream })

  return stream
    ? sse(chunks(generation, body), { onError })
    : json(completion(generation, await collect(generation), body))
}

/** `POST /v1/completions` */
export const completions: Handler = async (call) => {
  const body = parse(CompletionRequest, await call.request.json(), wording)
  const stream = body.stream ?? false
  const requests = toTextRequests(body)
  const echoes = await echoesOf(body, call)
  const generations = await inTurn(requests, (one) =>
    call.llm.generate(one, { signal: call.request.signal, caller: call.caller, stream }),
  )

  return stream
    ? sse(textChunks({ generations, echoes }, body), { onError: call.onError })
    : json(await textCompletion({ generations, echoes }, body))
}

/** Resolves when the first has begun. A prompt waits for the answer to the one before it. */
async function inTurn(
  requests: readonly GenerateRequest[],
  ask: (request: GenerateRequest) => Promise<Generation>,
): Promise<AsyncIterable<Generation>> {
  const [first, ...others] = requests
  const begun = first && (await ask(first))
  return (async function* () {
    if (begun) yield begun
    for (const request of others) yield await ask(request)
  })()
}

const echoesOf = async (
  { model, prompt, echo }: CompletionRequest,
  { request: { signal }, llm, caller }: Call,
): Promise<readonly string[]> =>
  echo
    ? Promise.all(
        prompt.map((one) =>
          typeof one === 'string' ? one : llm.detokenize({ model, tokens: one }, { signal, caller }),
        ),
      )
    : []
