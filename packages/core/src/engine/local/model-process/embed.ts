/**
 * Embeds and reranks texts. Each decode evaluates as many texts as fit, and the results of a decode are sent
 * immediately.
 */
import type { Token } from 'node-llama-cpp'
import { invalidRequest, LlmError } from '../../../errors.ts'
import { runConcurrently } from '../../../util/run-concurrently.ts'
import type { EmbedRequest, RerankRequest } from '../../embeddings.ts'
import { encodeVector } from '../../wire/vectors.ts'
import type { CallResult } from '../ipc/messages.ts'
import type { RuntimeModel } from './model.ts'
import type { GroupLimits, PoolingContexts, PoolingInput } from './pooling.ts'
import { checkTokenIds } from './prompt/prompt.ts'
import { addSpecialTokens } from './prompt/tokenize-requests.ts'
import type { RunContext } from './run-context.ts'

type EmitResult = (result: CallResult) => void
type TextTokens = readonly Token[]

/** A text that is ready for the model. */
interface PreparedInput {
  readonly index: number
  readonly input: PoolingInput
  readonly length: number
}

/** Stops without an error when the signal aborts. */
export async function embed(request: EmbedRequest, context: RunContext, emit: EmitResult): Promise<void> {
  const { inputs, overflow = 'error', dimensions } = request
  const { model, budget, signal } = context
  const pooling = requirePooling(model, 'embed')
  const { maxTokens } = pooling
  for (const [index, input] of inputs.entries())
    if (typeof input !== 'string') checkTokenIds(input, model, fieldNameOf('inputs', index))

  const prepare = async (input: EmbedRequest['inputs'][number], index: number): Promise<PreparedInput> => {
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
    return { index, input: [text], length: text.length }
  }
  await evaluateInputs(inputs, prepare, pooling, context, ({ index, length }, vector) =>
    emit({ index, vector: encodeVector(normalize(vector, dimensions)), inputTokens: length }),
  )
}

/** Stops without an error when the signal aborts. */
export async function rerank(request: RerankRequest, context: RunContext, emit: EmitResult): Promise<void> {
  const { documents, overflow = 'error' } = request
  const { model, budget, signal } = context
  const pooling = requirePooling(model, 'rerank')
  const { maxTokens, lengthOf } = pooling
  const query = await withLengthError(
    'query',
    maxTokens,
    model.tokenize(request.query, budget, { isPlain: true }),
  )
  const queryLength = lengthOf(query, [])
  if (queryLength >= maxTokens) throw inputTooLong('query', queryLength, maxTokens)

  const prepare = async (text: string, index: number): Promise<PreparedInput> => {
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
    return { index, input: [query, document], length: lengthOf(query, document) }
  }
  await evaluateInputs(documents, prepare, pooling, context, ({ index, length }, rank) =>
    emit({ index, vector: encodeVector(rank), inputTokens: length }),
  )
}

/**
 * Evaluates inputs in groups, in each context one group at a time. One more group is tokenized in the meantime. Each
 * group is a turn of its tenant.
 */
async function evaluateInputs<Item>(
  items: readonly Item[],
  prepare: (item: Item, index: number) => Promise<PreparedInput>,
  { pool, limits }: PoolingContexts,
  { model, progress, tenant, weight, background, signal: callSignal }: RunContext,
  onVector: (input: PreparedInput, vector: readonly number[]) => void,
): Promise<void> {
  const groups = groupInputs(items, prepare, limits, callSignal)
  const lanes = Array.from({ length: pool.size + 1 })
  await runConcurrently(lanes, lanes.length, callSignal, async (...[, , signal]) => {
    for await (const group of groups) {
      const vectors = await pool.run({ tenant, weight, background, signal }, (evaluate) =>
        evaluate(group.map(({ input }) => input)),
      )
      progress.steps++
      if (!vectors) return
      for (const [index, input] of group.entries()) onVector(input, toFinite(vectors[index], model))
    }
  })
}

/** Groups inputs in their order, as many as the limits allow. */
async function* groupInputs<Item>(
  items: readonly Item[],
  prepare: (item: Item, index: number) => Promise<PreparedInput>,
  { tokens, texts }: GroupLimits,
  signal: AbortSignal,
): AsyncGenerator<readonly PreparedInput[]> {
  let group: PreparedInput[] = []
  let used = 0
  for (const [index, item] of items.entries()) {
    const input = await prepare(item, index)
    if (signal.aborted) return
    if (group.length === texts || (group.length > 0 && used + input.length > tokens)) {
      yield group
      group = []
      used = 0
    }
    group.push(input)
    used += input.length
  }
  if (group.length > 0) yield group
}

function requirePooling({ name, pooling }: RuntimeModel, kind: PoolingContexts['kind']): PoolingContexts {
  if (pooling?.kind === kind) return pooling
  const what = kind === 'rerank' ? 'rank documents' : 'make embeddings'
  throw invalidRequest(`The model "${name}" cannot ${what}.`, { param: 'model' })
}

function toFinite(vector: ArrayLike<number> = [], { name }: Pick<RuntimeModel, 'name'>): readonly number[] {
  const numbers = Array.from(vector)
  if (numbers.every(Number.isFinite)) return numbers
  throw new LlmError('upstream', `The model "${name}" returned values that are not finite for this text.`)
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
