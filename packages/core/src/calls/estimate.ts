/** What a call may use, before a model has counted: bounds and estimates from the length of its texts. */
import type { WorstCase } from '../accounts/usage/ledger.ts'
import type { EmbedRequest, RerankRequest } from '../engine/embeddings.ts'
import type { Engine, EngineCall } from '../engine/engine.ts'
import type { GenerateRequest } from '../engine/request.ts'
import { measureTextBytes, toTemplateMessages } from '../engine/request-input.ts'
import { type Call, isGenerateRequest, type ModelRequest } from './call.ts'

/** A token has about 4 bytes, and the markup of a message about 4 tokens. */
const estimateTokens = (bytes: number, messages: number): number => Math.ceil(bytes / 4) + 4 * messages

/** For the limits: the model that would count exactly may not be loaded yet. What was used is settled afterwards. */
export const estimateInputTokens = ({ requests }: Call): number =>
  requests.reduce((sum, request) => {
    if (isGenerateRequest(request))
      return sum + estimateTokens(measureTextBytes(request), toTemplateMessages(request.input).length)
    const texts = textsOf(request)
    const bytes = texts.reduce(
      (bytes, text) => bytes + (typeof text === 'string' ? Buffer.byteLength(text) : 4 * text.length),
      0,
    )
    return sum + estimateTokens(bytes, texts.length)
  }, 0)

type PoolingText = string | readonly number[]

function textsOf(request: ModelRequest): readonly PoolingText[] {
  const { inputs, query, documents } = request as Partial<EmbedRequest & RerankRequest>
  if (documents) return documents.map((document) => `${query}${document}`)
  return inputs ?? []
}

/** Special tokens around each text. */
const tokensAroundText = 8

/** The most that an embedding or reranking request can use: no token is shorter than a byte. */
export const computePoolingWorstCase = (request: ModelRequest): WorstCase => ({
  inputTokens: textsOf(request).reduce(
    (sum, text) =>
      sum + (typeof text === 'string' ? Buffer.byteLength(text) : text.length) + tokensAroundText,
    0,
  ),
  outputTokens: 0,
})

/** The most that all requests of a call can use together. The model counts their prompts, and is loaded for that. */
export async function computeWorstCase(
  engine: Engine,
  requests: readonly GenerateRequest[],
  model: string,
  call: EngineCall,
): Promise<WorstCase> {
  const each: WorstCase[] = []
  for (const request of requests) each.push(await computeOne(engine, request, model, call))
  return {
    inputTokens: each.reduce((sum, { inputTokens }) => sum + inputTokens, 0),
    outputTokens: sumKnown(
      each.map(
        ({ outputTokens, contextRoom }) =>
          outputTokens && Math.min(outputTokens, contextRoom ?? outputTokens),
      ),
    ),
    contextRoom: sumKnown(each.map(({ contextRoom }) => contextRoom)),
  }
}

async function computeOne(
  engine: Engine,
  request: GenerateRequest,
  model: string,
  call: EngineCall,
): Promise<WorstCase> {
  const { maxTokens: outputTokens, overflow } = request
  const inputTokens = await engine.countTokens(request, call)
  const names = [model, request.model]
  const contextSize = engine.loaded().find(({ name }) => names.includes(name))?.contextSize
  if (!contextSize) return { inputTokens, outputTokens }
  // How many of the oldest messages are cut off depends on the length of the answer, so that must not change.
  if (overflow === 'truncate' && inputTokens >= contextSize)
    return { inputTokens: contextSize, outputTokens, contextRoom: contextSize }
  // The last token of an answer needs no room.
  return { inputTokens, outputTokens, contextRoom: Math.max(1, contextSize - inputTokens + 1) }
}

/** Absent where one of them is not known. */
const sumKnown = (numbers: readonly (number | undefined)[]): number | undefined =>
  numbers.reduce<number | undefined>(
    (sum, number) => (sum === undefined || number === undefined ? undefined : sum + number),
    0,
  )
