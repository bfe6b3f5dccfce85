/**
 * Embeds and reranks texts. Each context evaluates one text at a time, and each result is sent immediately.
 */
import type { Token } from 'node-llama-cpp'
import { invalidRequest, LlmError } from '../../../errors.ts'
import { runConcurrently } from '../../../util/run-concurrently.ts'
import type { EmbedRequest, RerankRequest } from '../../embeddings.ts'
import { encodeVector } from '../../wire/vectors.ts'
import type { CallResult } from '../ipc/messages.ts'
import type { RuntimeModel } from './model.ts'
import type { EvaluateTexts, PoolingContexts } from './pooling.ts'
import { checkTokenIds } from './prompt/prompt.ts'
import { addSpecialTokens } from './prompt/tokenize-requests.ts'
import type { RunContext } from './run-context.ts'

type EmitResult = (result: CallResult) => void
type TextTokens = readonly Token[]

/** Stops without an error when the signal aborts. */
export async function embed(request: EmbedRequest, context: RunContext, emit: EmitResult): Promise<void> {
  const { inputs, overflow = 'error', dimensions } = request
  const { model, budget } = context
  const { pool, maxTokens } = requirePooling(model, 'embed')
  for (const [index, input] of inputs.entries())
    if (typeof input !== 'string') checkTokenIds(input, model, fieldNameOf('inputs', index))

  await runConcurrently(inputs, concurrencyFor(pool), context.signal, async (input, index, signal) => {
    const name = fieldNameOf('inputs', index)
    const stopAfter = overflow === 'truncate' ? maxTokens : undefined
    const found =
      typeof input === 'string'
        ? await withLengthError(name, maxTokens, model.tokenize(input, budget.fork(signal), { stopAfter }))
        : checkTokenIds(input, model, name)
    const tokens = addSpecialTokens(found, model)
    if (tokens.length === 0 && !signal.aborted) throw invalidRequest(`'${name}' is empty.`, { param: name })
    if (tokens.length > maxTokens && stopAfter === undefined)
      throw inputTooLong(name, tokens.length, maxTokens)
    const text = truncateTokens(tokens, maxTokens, model)
    const vector = await evaluateText(context, signal, (evaluate) => evaluate(text))
    if (vector) emit({ index, vector: encodeVector(normalize(vector, dimensions)), inputTokens: text.length })
  })
}

/** Stops without an error when the signal aborts. */
export async function rerank(request: RerankRequest, context: RunContext, emit: EmitResult): Promise<void> {
  const { documents, overflow = 'error' } = request
  const { model, budget, signal } = context
  const { pool, maxTokens, lengthOf } = requirePooling(model, 'rerank')
  const query = await withLengthError(
    'query',
    maxTokens,
    model.tokenize(request.query, budget, { isPlain: true }),
  )
  const queryLength = lengthOf(query, [])
  if (queryLength >= maxTokens) throw inputTooLong('query', queryLength, maxTokens)

  await runConcurrently(documents, concurrencyFor(pool), signal, async (text, index, signal) => {
    const name = fieldNameOf('documents', index)
    const stopAfter = overflow === 'truncate' ? maxTokens : undefined
    const tokens = await withLengthError(
      name,
      maxTokens,
      model.tokenize(text, budget.fork(signal), { isPlain: true, stopAfter }),
    )
    const excess = Math.max(0, lengthOf(query, tokens) - maxTokens)
    if (excess > 0 && stopAfter === undefined) throw inputTooLong(name, lengthOf(query, tokens), maxTokens)
    const document = tokens.slice(0, tokens.length - excess)
    const rank = await evaluateText(context, signal, (evaluate) => evaluate(query, document))
    if (rank) emit({ index, vector: encodeVector(rank), inputTokens: lengthOf(query, document) })
  })
}

/** Number of texts in progress: one per context, and one more that is tokenized in the meantime. */
const concurrencyFor = ({ size }: PoolingContexts['pool']): number => size + 1

function requirePooling({ name, pooling }: RuntimeModel, kind: PoolingContexts['kind']): PoolingContexts {
  if (pooling?.kind === kind) return pooling
  const what = kind === 'rerank' ? 'rank documents' : 'make embeddings'
  throw invalidRequest(`The model "${name}" cannot ${what}.`, { param: 'model' })
}

/** Resolves with `undefined` when the signal aborts before a context is free. */
async function evaluateText(
  { model, progress, tenant, weight, background }: RunContext,
  signal: AbortSignal,
  task: (evaluate: EvaluateTexts) => Promise<ArrayLike<number>>,
): Promise<readonly number[] | undefined> {
  const found = await model.pooling?.pool.run({ tenant, weight, background, signal }, task)
  progress.steps++
  if (!found) return undefined
  const numbers = Array.from(found)
  if (numbers.every(Number.isFinite)) return numbers
  throw new LlmError(
    'upstream',
    `The model "${model.name}" returned values that are not finite for this text.`,
  )
}

/** Truncates a text to `maxTokens`, but keeps the token that every text of this model ends with. */
function truncateTokens(text: TextTokens, maxTokens: number, { end }: Pick<RuntimeModel, 'end'>): TextTokens {
  if (text.length <= maxTokens) return text
  return end === undefined ? text.slice(0, maxTokens) : [...text.slice(0, maxTokens - 1), end]
}

/** Truncates a vector to `dimensions` and scales it to length 1. Does not scale a zero vector. */
function normalize(vector: readonly number[], dimensions = vector.length): readonly number[] {
  const first = vector.slice(0, dimensions)
  const length = Math.sqrt(first.reduce((sum, value) => sum + value * value, 0))
  return length > 0 ? first.map((value) => value / length) : first
}

const fieldNameOf = (field: string, index: number): string => `${field}[${index}]`

/** Replaces an `LlmError` `context_length` of the tokenizer by an error that names the request field. */
async function withLengthError(
  param: string,
  maxTokens: number,
  tokens: Promise<TextTokens>,
): Promise<TextTokens> {
  return tokens.catch((cause: unknown) => {
    const { code, details } = LlmError.from(cause)
    throw code === 'context_length' ? inputTooLong(param, details.inputTokens ?? 0, maxTokens) : cause
  })
}

const inputTooLong = (param: string, inputTokens: number, contextSize: number): LlmError =>
  new LlmError(
    'context_length',
    `'${param}' has ${inputTokens} tokens, and the model takes at most ${contextSize}.`,
    { param, inputTokens, contextSize },
  )
