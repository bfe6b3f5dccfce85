/** Turns a request into a prompt: renders the template and tokenizes the result. */
import type { Token } from 'node-llama-cpp'
import { contextLengthExceeded, invalidRequest, LlmError } from '../../../../errors.ts'
import { resolvePromptEnd } from '../../../../template/continuation.ts'
import type { ChatInput, GenerateRequest, InfillInput, Message, PromptEnd, Tool } from '../../../request.ts'
import { callableTools, isRaw, toTemplateMessages } from '../../../request-input.ts'
import type { RuntimeModel } from '../model.ts'
import type { RunContext } from '../run-context.ts'
import { parseRequestTemplate, resolveReasoning } from './template-profile.ts'

/** Pieces of a prompt in order. Each is text or a list of token ids. */
type PromptPieces = readonly (string | readonly number[])[]

/** Throws an `LlmError` `context_length` if the request has more token ids than twice the context size. */
export async function renderPrompt(request: GenerateRequest, context: RunContext): Promise<string> {
  const { model } = context
  const pieces = await renderPieces(request, request.input, context)
  const ids = pieces.reduce((sum, piece) => (typeof piece === 'string' ? sum : sum + piece.length), 0)
  if (ids > maxUsefulTokens(model)) throw contextLengthExceeded(ids, model.contextSize)
  return pieces
    .map((piece) =>
      typeof piece === 'string' ? piece : model.detokenizeWithSpecial(checkTokenIds(piece, model)),
    )
    .join('')
}

/**
 * Throws an `LlmError`: `context_length` if the prompt leaves no room for output, `invalid_request` if the
 * prompt is empty and the model has no start token.
 */
export async function tokenizePrompt(
  request: GenerateRequest,
  context: RunContext,
): Promise<readonly Token[]> {
  const { input, overflow = 'error' } = request
  const { contextSize } = context.model
  const tokens = context.countedPrompt ?? (await tokenizeOrEstimate(request, input, context))
  // After an abort, there are no tokens either.
  if (Array.isArray(tokens) && tokens.length === 0 && !context.signal.aborted)
    return [requireStartToken(context.model)]
  if (Array.isArray(tokens) && tokens.length < contextSize) return tokens
  const shorter =
    input.kind === 'chat' && overflow === 'truncate'
      ? await truncateMessages(request, input, context)
      : undefined
  if (shorter) return shorter
  throw contextLengthExceeded(typeof tokens === 'number' ? tokens : tokens.length, contextSize)
}

/**
 * Returns the start token, which replaces an empty prompt as in OpenAI's API. Throws an `LlmError`
 * `invalid_request` if the model has none.
 */
function requireStartToken({ start }: RuntimeModel): Token {
  if (start === undefined) throw invalidRequest('The prompt is empty.', { param: 'prompt' })
  return start
}

/** Tokenizes another input for the same request. Returns no tokens if the prompt is far too long. */
export async function tokenizeInput(
  request: GenerateRequest,
  input: GenerateRequest['input'],
  context: RunContext,
): Promise<readonly Token[]> {
  const tokens = await tokenizeOrEstimate(request, input, context)
  return typeof tokens === 'number' ? [] : tokens
}

/** Number of prompt tokens that are not from the request: 1 if a BOS token was added, else 0. */
export function countAddedTokens(
  { input }: Pick<GenerateRequest, 'input'>,
  prompt: readonly Token[],
  { bos, detokenizeWithSpecial }: Pick<RuntimeModel, 'bos' | 'detokenizeWithSpecial'>,
): number {
  if (bos === undefined || prompt[0] !== bos) return 0
  const [first = ''] = input.kind === 'text' ? input.prompt : []
  const isWritten =
    typeof first === 'string' ? first.startsWith(detokenizeWithSpecial([bos])) : first[0] === bos
  return isWritten ? 0 : 1
}

/**
 * Counts the tokens of a prompt, which may exceed the context. Above twice the context, the count is an
 * estimate. Otherwise, keeps the tokens for the answer.
 */
export async function countTokens(request: GenerateRequest, context: RunContext): Promise<number> {
  const tokens = await tokenizeOrEstimate(request, request.input, context)
  if (typeof tokens === 'number') return tokens
  // After an abort, tokens may be missing.
  if (!context.signal.aborted) context.keepCounted?.(tokens)
  return tokens.length
}

/**
 * Drops the oldest turns until the prompt leaves room for the output. The remaining turns begin with a user
 * message. All system messages stay. The last message stays too, and may take the room for the output.
 */
async function truncateMessages(
  request: GenerateRequest,
  chat: ChatInput,
  context: RunContext,
): Promise<readonly Token[] | undefined> {
  const { messages } = chat
  const system = messages.filter(({ role }) => role === 'system')
  const turns = messages.filter(({ role }) => role !== 'system')
  const starts = turns.flatMap(({ role }, index) =>
    index > 0 && (role === 'user' || index === turns.length - 1) ? [index] : [],
  )
  const {
    model: { contextSize },
    progress,
    signal,
  } = context
  const room = contextSize - Math.min(request.maxTokens ?? contextSize, contextSize >> 2)
  let found: readonly Token[] | undefined
  for (let low = 0, high = starts.length; low < high && !signal.aborted; progress.steps++) {
    const middle = (low + high) >> 1
    const remaining = [...system, ...turns.slice(starts[middle])]
    const tokens = await tokenizeOrEstimate(request, { ...chat, messages: remaining }, context).catch(
      infiniteIfRejected,
    )
    const maxLength = middle === starts.length - 1 ? contextSize : room
    if (typeof tokens !== 'number' && tokens.length < maxLength) {
      found = tokens
      high = middle
    } else low = middle + 1
  }
  return found
}

/** A template may reject the last turns of a conversation that it accepts as a whole. */
function infiniteIfRejected(cause: unknown): number {
  if (LlmError.from(cause).code === 'invalid_request') return Number.POSITIVE_INFINITY
  throw cause
}

/** Returns the tokens of the prompt, or an estimate of their number if the prompt is far too long. */
async function tokenizeOrEstimate(
  request: GenerateRequest,
  input: GenerateRequest['input'],
  context: RunContext,
): Promise<readonly Token[] | number> {
  const { model, budget } = context
  const tokens: Token[] = []
  const pieces = await renderPieces(request, input, context)
  // In infill without a template, text that looks like a special token stays plain text. Go templates have
  // already escaped such text.
  const isPlain = input.kind === 'infill' && pieces.length > 1
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  let seen = 0
  try {
    for (const piece of pieces) {
      const isText = typeof piece === 'string'
      const more = isText ? await model.tokenize(piece, budget, { isPlain }) : checkTokenIds(piece, model)
      seen += piece.length
      const count = tokens.length + more.length
      if (count > maxUsefulTokens(model)) return Math.round((count * length) / seen)
      // Templates also write the BOS token. After other tokens, it would mark the start of another text.
      const hasRepeatedBos = isText && tokens.length > 0 && more[0] === model.bos
      for (const token of hasRepeatedBos ? more.slice(1) : more) tokens.push(token)
    }
  } catch (cause) {
    const { code, details } = LlmError.from(cause)
    if (code === 'context_length' && details.inputTokens !== undefined) return details.inputTokens
    throw cause
  }
  if (model.bos !== undefined && tokens[0] !== model.bos) tokens.unshift(model.bos)
  return tokens
}

async function renderPieces(
  request: GenerateRequest,
  input: GenerateRequest['input'],
  { model, renderer, budget }: RunContext,
): Promise<PromptPieces> {
  if (input.kind === 'text' && isRaw(input)) return input.prompt
  const { template } = model
  const go = parseRequestTemplate(input)
  const promptEnd = input.kind === 'chat' ? input.promptEnd : undefined
  if (go) checkPromptEnd(toTemplateMessages(input), promptEnd)
  const goTemplate = go && { goTemplate: go.source }
  if (input.kind === 'infill')
    return go?.uses.suffix
      ? [await renderer.render({ template, ...goTemplate, messages: [], options: {}, gap: input }, budget)]
      : toInfillPieces(input, model)
  const reasoning = resolveReasoning(request, go)
  const options = {
    reasoning: reasoning === 'auto' ? undefined : reasoning,
    tools: selectShownTools(input),
    variables: input.templateOptions,
    promptEnd,
  }
  const job = { template, ...goTemplate, messages: toTemplateMessages(input), options }
  const text = await renderer.render(job, budget)
  const ids = input.kind === 'text' ? input.prompt.filter((piece) => typeof piece !== 'string') : []
  return [...ids, text]
}

/** Throws an `LlmError` `invalid_request` if a Go template ends its prompts in another way. It has no variable for it. */
function checkPromptEnd(messages: readonly Message[], promptEnd: PromptEnd | undefined): void {
  if (resolvePromptEnd(messages, promptEnd) === resolvePromptEnd(messages)) return
  throw invalidRequest("The prompt's end cannot be chosen: the template of this model is a Go template.", {
    param: 'promptEnd',
    issue: 'unsupported',
  })
}

/**
 * Tools that the prompt shows. With a forced tool call, it shows all tools, so that the cached prompt can be
 * reused. The grammar then allows only the forced ones.
 */
const selectShownTools = (input: GenerateRequest['input']): readonly Tool[] =>
  input.kind === 'chat' && input.toolChoice?.mode === 'required' ? (input.tools ?? []) : callableTools(input)

/** Builds an infill prompt in the order prefix, suffix, middle, which most models are trained for. */
function toInfillPieces({ prefix, suffix }: InfillInput, { name, infill }: RuntimeModel): PromptPieces {
  if (infill) return [[infill.prefix], prefix, [infill.suffix], suffix, [infill.middle]]
  throw invalidRequest(
    `The model "${name}" does not support fill-in-the-middle: its vocabulary has no tokens for it.`,
    {
      param: 'suffix',
    },
  )
}

/** Number of tokens after which tokenizing stops, since the prompt cannot fit into the context. */
const maxUsefulTokens = ({ contextSize }: RuntimeModel): number => 2 * contextSize

/** Throws an `LlmError` `invalid_request` for ids outside the vocabulary. */
export function checkTokenIds(
  ids: readonly number[],
  { vocabularySize }: Pick<RuntimeModel, 'vocabularySize'>,
  param?: string,
): readonly Token[] {
  const unknown = ids.find((id) => id >= vocabularySize)
  if (unknown === undefined) return ids as readonly Token[]
  const message = `The model has no token ${unknown}: its vocabulary has ${vocabularySize} tokens.`
  throw invalidRequest(message, param === undefined ? {} : { param })
}
