/** The methods of the engine contract, for other apps with Modelmount. */
import { partSizes } from '../../engine/wire/app-api.ts'
import {
  parseDetokenizeRequest,
  parseEmbedRequest,
  parseForwardedRequest,
  parseModelRequest,
  parseRerankRequest,
  parseTokenizeRequest,
} from '../../engine/wire/parse-request.ts'
import { encodeVector } from '../../engine/wire/vectors.ts'
import { lineRoute, partLines, resultRoute } from './lines.ts'

/** `POST /modelmount/v1/generate` */
export const generate = lineRoute(async function* (body, llm, signal) {
  const generation = await llm.generate(parseForwardedRequest(body), { signal, stream: true })
  for await (const event of generation) yield { event }
})

/** `POST /modelmount/v1/count-tokens` */
export const countTokens = resultRoute(async (body, llm, { signal }) => [
  { result: await llm.countTokens(parseForwardedRequest(body), { signal }) },
])

/** `POST /modelmount/v1/count-cached-tokens` */
export const countCachedTokens = resultRoute(async (body, llm, { signal }) => [
  { result: await llm.countCachedTokens(parseForwardedRequest(body), { signal }) },
])

/** `POST /modelmount/v1/render` */
export const render = resultRoute(async (body, llm, { signal }) =>
  partLines(await llm.render(parseForwardedRequest(body), { signal }), partSizes.characters),
)

/** `POST /modelmount/v1/embed` */
export const embed = resultRoute(async (body, llm, { signal, push }) => {
  const onInputTokens = (inputTokens: number): void => push({ inputTokens })
  const { embeddings, inputTokens, loadMs, totalMs } = await llm.embed(parseEmbedRequest(body), {
    signal,
    onInputTokens,
  })
  return partLines(embeddings.map(encodeVector), partSizes.vectors, { inputTokens, loadMs, totalMs })
})

/** `POST /modelmount/v1/rerank` */
export const rerank = resultRoute(async (body, llm, { signal, push }) => {
  const onInputTokens = (inputTokens: number): void => push({ inputTokens })
  const { scores, inputTokens } = await llm.rerank(parseRerankRequest(body), { signal, onInputTokens })
  return partLines(scores, partSizes.items, { inputTokens })
})

/** `POST /modelmount/v1/tokenize` */
export const tokenize = resultRoute(async (body, llm, { signal }) =>
  partLines(await llm.tokenize(parseTokenizeRequest(body), { signal }), partSizes.items),
)

/** `POST /modelmount/v1/detokenize` */
export const detokenize = resultRoute(async (body, llm, { signal }) =>
  partLines(await llm.detokenize(parseDetokenizeRequest(body), { signal }), partSizes.characters),
)

/** `POST /modelmount/v1/token-pieces` */
export const tokenPieces = resultRoute(async (body, llm, { signal }) =>
  partLines(await llm.tokenPieces(parseDetokenizeRequest(body), { signal }), partSizes.items),
)

/** `POST /modelmount/v1/load` */
export const load = resultRoute(async (body, llm, { signal, push }) => {
  const { model, load } = parseModelRequest(body)
  await llm.load(model, {
    ...load,
    signal,
    onProgress: (progress) => push({ event: { type: 'progress', ...progress } }),
  })
  return [{ result: null }]
})

/** `POST /modelmount/v1/unload` */
export const unload = resultRoute(async (body, llm) => {
  await llm.unload(parseModelRequest(body).model)
  return [{ result: null }]
})

/** `POST /modelmount/v1/delete-prompt-states`: those of the tenant that the request names. */
export const deletePromptStates = resultRoute(async (_body, llm) => [
  { result: await llm.deletePromptStates() },
])
