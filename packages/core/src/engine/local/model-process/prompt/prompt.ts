/** From a request to what the model reads: the text that its template makes, and the tokens of it. */
import type { Token } from 'node-llama-cpp'
import { contextLengthExceeded, invalidRequest, LlmError } from '../../../../errors.ts'
import {
  type ChatInput,
  callableTools,
  type GenerateRequest,
  type InfillInput,
  isRaw,
  type Tool,
  toTemplateMessages,
} from '../../../request.ts'
import type { RuntimeModel } from '../model.ts'
import type { RunContext } from '../run-context.ts'
import { parseRequestTemplate, resolveReasoning } from './template-profile.ts'

/** Text and tokens, in order. */
type PromptPieces = readonly (string | readonly number[])[]

/** Throws `context_length` for far more token ids than the model could read. */
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

/** Throws `context_length` for a prompt that leaves no room for an answer, `invalid_request` for none at all. */
export async function tokenizePrompt(
  request: GenerateRequest,
  context: RunContext,
): Promise<readonly Token[]> {
  const { input, overflow = 'error' } = request
  const { contextSize } = context.model
  const tokens = await tokenizeOrEstimate(request, input, context)
  // For a caller who has left no text is read.
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

/** What stands in front of any text, as OpenAI's API has it for a prompt that is empty. Throws `invalid_request` where a model has none. */
function requireStartToken({ start }: RuntimeModel): Token {
  if (start === undefined) throw invalidRequest('The prompt is empty.', { param: 'prompt' })
  return start
}

/** The tokens of another input; none where they are far too many. */
export async function tokenizeInput(
  request: GenerateRequest,
  input: GenerateRequest['input'],
  context: RunContext,
): Promise<readonly Token[]> {
  const tokens = await tokenizeOrEstimate(request, input, context)
  return typeof tokens === 'number' ? [] : tokens
}

/** How many tokens of a prompt are not of the request: the one that the model begins every text with, if nobody wrote it. */
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

/** How long a prompt is, also one that is longer than the context. Nothing is read. */
export async function countTokens(request: GenerateRequest, context: RunContext): Promise<number> {
  const tokens = await tokenizeOrEstimate(request, request.input, context)
  return typeof tokens === 'number' ? tokens : tokens.length
}

/**
 * As many of the newest messages as there is room for, with some left for the answer, and none of them
 * without the question before it; system messages stay, and so does the last, for which there may be all the room.
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

/** A template need not take what is left of a conversation that it took. */
function infiniteIfRejected(cause: unknown): number {
  if (LlmError.from(cause).code === 'invalid_request') return Number.POSITIVE_INFINITY
  throw cause
}

/** Their number alone where they are far too many. */
async function tokenizeOrEstimate(
  request: GenerateRequest,
  input: GenerateRequest['input'],
  context: RunContext,
): Promise<readonly Token[] | number> {
  const { model, signal } = context
  const tokens: Token[] = []
  const pieces = await renderPieces(request, input, context)
  // What surrounds a gap is text, whatever it looks like; a template of its own breaks it up where it spells tokens.
  const isPlain = input.kind === 'infill' && pieces.length > 1
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  let seen = 0
  try {
    for (const piece of pieces) {
      const isText = typeof piece === 'string'
      const more = isText ? await model.tokenize(piece, signal, { isPlain }) : checkTokenIds(piece, model)
      seen += piece.length
      const count = tokens.length + more.length
      if (count > maxUsefulTokens(model)) return Math.round((count * length) / seen)
      // Templates write it, too; behind other tokens it would begin another text.
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
  { model, renderer, signal }: RunContext,
): Promise<PromptPieces> {
  if (input.kind === 'text' && isRaw(input)) return input.prompt
  const { template } = model
  const go = parseRequestTemplate(input)
  const goTemplate = go && { goTemplate: go.source }
  if (input.kind === 'infill')
    return go?.uses.suffix
      ? [await renderer.render({ template, ...goTemplate, messages: [], options: {}, gap: input }, signal)]
      : toInfillPieces(input, model)
  const reasoning = resolveReasoning(request, go)
  const options = {
    reasoning: reasoning === 'auto' ? undefined : reasoning,
    tools: selectShownTools(input),
    variables: input.templateOptions,
  }
  const job = { template, ...goTemplate, messages: toTemplateMessages(input), options }
  const text = await renderer.render(job, signal)
  const ids = input.kind === 'text' ? input.prompt.filter((piece) => typeof piece !== 'string') : []
  return [...ids, text]
}

/**
 * Where a call is forced, all tools, whichever it may be: the answer is held to those, and a prompt that stays the same is
 * not read again.
 */
const selectShownTools = (input: GenerateRequest['input']): readonly Tool[] =>
  input.kind === 'chat' && input.toolChoice?.mode === 'required' ? (input.tools ?? []) : callableTools(input)

/** The order that models are trained for mostly: what they write comes behind both. */
function toInfillPieces({ prefix, suffix }: InfillInput, { name, infill }: RuntimeModel): PromptPieces {
  if (infill) return [[infill.prefix], prefix, [infill.suffix], suffix, [infill.middle]]
  throw invalidRequest(`The model "${name}" was not made to fill gaps: it has no tokens for that.`, {
    param: 'suffix',
  })
}

/** More tokens than these are not worth the work: they will not fit. */
const maxUsefulTokens = ({ contextSize }: RuntimeModel): number => 2 * contextSize

/** Throws `invalid_request` for ids that the model does not have. */
export function checkTokenIds(
  ids: readonly number[],
  { vocabularySize }: Pick<RuntimeModel, 'vocabularySize'>,
  param?: string,
): readonly Token[] {
  const unknown = ids.find((id) => id >= vocabularySize)
  if (unknown === undefined) return ids as readonly Token[]
  const message = `The model has no token ${unknown}: its vocabulary has ${vocabularySize}.`
  throw invalidRequest(message, param === undefined ? {} : { param })
}
