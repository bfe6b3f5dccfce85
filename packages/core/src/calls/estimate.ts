/**
 * Computes the token usage of a call before it runs: an estimate from the length of its texts, and an upper
 * bound.
 */
import type { WorstCase } from '../accounts/usage/ledger.ts'
import type { EmbedRequest, RerankRequest } from '../engine/embeddings.ts'
import type { Engine, EngineCall } from '../engine/engine.ts'
import type { GenerateRequest } from '../engine/request.ts'
import { estimatePromptTokens, lifetimesOf } from '../engine/request-input.ts'
import { type Call, isGenerateRequest, type ModelRequest } from './call.ts'

/** Assumes 4 bytes per token, and 4 tokens for what a model adds around each text. */
const estimateTokens = (bytes: number, texts: number): number => Math.ceil(bytes / 4) + 4 * texts

/**
 * Estimates input tokens for the rate limits, because an exact count would need the loaded model. The limits
 * step corrects the estimate when the call ends.
 */
export const estimateInputTokens = ({ requests, answersPerPrompt }: Call): number =>
  requests.reduce((sum, request, index) => {
    if (index % answersPerPrompt > 0) return sum
    if (isGenerateRequest(request)) return sum + estimatePromptTokens(request)
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

/** Upper bound of the special tokens that a model adds around each text. */
const tokensAroundText = 8

/**
 * Upper bound of the tokens of an embedding or reranking request. Each token stands for at least one byte.
 */
export const computePoolingWorstCase = (request: ModelRequest): WorstCase => ({
  inputTokens: textsOf(request).reduce(
    (sum, text) =>
      sum + (typeof text === 'string' ? Buffer.byteLength(text) : text.length) + tokensAroundText,
    0,
  ),
  outputTokens: 0,
})

/**
 * Sums the worst cases of all requests of a call, with each prompt once. Loads the model if necessary, because the
 * engine counts the prompts with it.
 */
export async function computeWorstCase(
  engine: Engine,
  { requests: all, modelName, answersPerPrompt }: Pick<Call, 'requests' | 'modelName' | 'answersPerPrompt'>,
  engineCall: EngineCall,
): Promise<WorstCase> {
  const requests = all as readonly GenerateRequest[]
  const each: WorstCase[] = []
  for (const [index, request] of requests.entries()) {
    const isFurther = index % answersPerPrompt > 0
    const one = isFurther
      ? (each.at(-1) as WorstCase)
      : await computeOne(engine, request, modelName, engineCall)
    each.push(isFurther ? { ...one, inputTokens: 0 } : one)
  }
  return {
    inputTokens: each.reduce((sum, { inputTokens }) => sum + inputTokens, 0),
    outputTokens: sumKnown(
      each.map(
        ({ outputTokens, outputRoom }) => outputTokens && Math.min(outputTokens, outputRoom ?? outputTokens),
      ),
    ),
    answers: requests.length,
    outputRoom: sumKnown(each.map(({ outputRoom }) => outputRoom)),
  }
}

/**
 * Counts the input tokens of a call, each prompt once, without those that it would read from the prompt cache now.
 * Returns undefined without counting if it would read none: no prompt has a breakpoint, or the model is not loaded.
 */
export async function countUncachedTokens(
  engine: Engine,
  { requests, modelName, answersPerPrompt }: Pick<Call, 'requests' | 'modelName' | 'answersPerPrompt'>,
  engineCall: EngineCall,
): Promise<number | undefined> {
  const prompts = (requests as readonly GenerateRequest[]).filter(
    (_, index) => index % answersPerPrompt === 0,
  )
  const isCached = prompts.some(({ input }) => lifetimesOf(input).length > 0)
  const isLoaded = engine.loaded().some(({ name }) => name === modelName || name === prompts[0]?.model)
  if (!engine.countCachedTokens || !isCached || !isLoaded) return undefined
  let sum = 0
  for (const prompt of prompts)
    sum +=
      (await engine.countTokens(prompt, engineCall)) - (await engine.countCachedTokens(prompt, engineCall))
  return Math.max(0, sum)
}

async function computeOne(
  engine: Engine,
  request: GenerateRequest,
  model: string,
  call: EngineCall,
): Promise<WorstCase> {
  const { maxTokens: outputTokens, overflow } = request
  const inputTokens = await (engine.boundTokens ?? engine.countTokens).call(engine, request, call)
  const names = [model, request.model]
  const contextSize = engine.loaded().find(({ name }) => names.includes(name))?.contextSize
  if (!contextSize) return { inputTokens, outputTokens }
  // The engine drops the oldest messages until the context has room for `maxTokens`. So the prompt, which is
  // too long, does not reduce the room.
  if (overflow === 'truncate' && inputTokens >= contextSize)
    return { inputTokens: contextSize, outputTokens, outputRoom: contextSize }
  // Plus 1, because the last output token need not be evaluated, and then takes no room in the context.
  return { inputTokens, outputTokens, outputRoom: Math.max(1, contextSize - inputTokens + 1) }
}

/** Undefined if one of the numbers is unknown. */
const sumKnown = (numbers: readonly (number | undefined)[]): number | undefined =>
  numbers.reduce<number | undefined>(
    (sum, number) => (sum === undefined || number === undefined ? undefined : sum + number),
    0,
  )
