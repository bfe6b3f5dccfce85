/** From a request to what the model reads: the text that its template makes, and the tokens of it. */
import type { Token } from 'node-llama-cpp'
import { contextLength, invalidRequest, LlmError } from '../../../../errors.ts'
import {
  type ChatInput,
  callableTools,
  type GenerateRequest,
  type InfillInput,
  isRaw,
  messagesOf,
  type Tool,
} from '../../../request.ts'
import type { Binding } from '../model.ts'
import type { Work } from '../run-request.ts'
import { goTemplateOf, toldReasoning } from './template-profile.ts'

/** Text and tokens, in order. */
type Pieces = readonly (string | readonly number[])[]

/** Throws `context_length` for far more token ids than the model could read. */
export async function promptText(request: GenerateRequest, work: Work): Promise<string> {
  const { model } = work
  const pieces = await piecesOf(request, request.input, work)
  const ids = pieces.reduce((sum, piece) => (typeof piece === 'string' ? sum : sum + piece.length), 0)
  if (ids > far(model)) throw contextLength(ids, model.contextSize)
  return pieces
    .map((piece) => (typeof piece === 'string' ? piece : model.spell(known(piece, model))))
    .join('')
}

/** Throws `context_length` for a prompt that leaves no room for an answer, `invalid_request` for none at all. */
export async function promptTokens(request: GenerateRequest, work: Work): Promise<readonly Token[]> {
  const { input, overflow = 'error' } = request
  const { contextSize } = work.model
  const tokens = await tokensOrCount(request, input, work)
  // For a caller who has left no text is read.
  if (Array.isArray(tokens) && tokens.length === 0 && !work.signal.aborted) return [startOf(work.model)]
  if (Array.isArray(tokens) && tokens.length < contextSize) return tokens
  const shorter =
    input.kind === 'chat' && overflow === 'truncate' ? await truncated(request, input, work) : undefined
  if (shorter) return shorter
  throw contextLength(typeof tokens === 'number' ? tokens : tokens.length, contextSize)
}

/** What stands in front of any text, as OpenAI's API has it for a prompt that is empty. Throws `invalid_request` where a model has none. */
function startOf({ start }: Binding): Token {
  if (start === undefined) throw invalidRequest('The prompt is empty.', { param: 'prompt' })
  return start
}

/** The tokens of another input; none where they are far too many. */
export async function readPrompt(
  request: GenerateRequest,
  input: GenerateRequest['input'],
  work: Work,
): Promise<readonly Token[]> {
  const tokens = await tokensOrCount(request, input, work)
  return typeof tokens === 'number' ? [] : tokens
}

/** How many tokens of a prompt are not of the request: the one that the model begins every text with, if nobody wrote it. */
export function addedTokens(
  { input }: Pick<GenerateRequest, 'input'>,
  prompt: readonly Token[],
  { bos, spell }: Pick<Binding, 'bos' | 'spell'>,
): number {
  if (bos === undefined || prompt[0] !== bos) return 0
  const [first = ''] = input.kind === 'text' ? input.prompt : []
  const isWritten = typeof first === 'string' ? first.startsWith(spell([bos])) : first[0] === bos
  return isWritten ? 0 : 1
}

/** How long a prompt is, also one that is longer than the context. Nothing is read. */
export async function countTokens(request: GenerateRequest, work: Work): Promise<number> {
  const tokens = await tokensOrCount(request, request.input, work)
  return typeof tokens === 'number' ? tokens : tokens.length
}

/**
 * As many of the newest messages as there is room for, with some left for the answer, and none of them
 * without the question before it; system messages stay, and so does the last, for which there may be all the room.
 */
async function truncated(
  request: GenerateRequest,
  chat: ChatInput,
  work: Work,
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
  } = work
  const room = contextSize - Math.min(request.maxTokens ?? contextSize, contextSize >> 2)
  let found: readonly Token[] | undefined
  for (let low = 0, high = starts.length; low < high && !signal.aborted; progress.steps++) {
    const middle = (low + high) >> 1
    const kept = [...system, ...turns.slice(starts[middle])]
    const tokens = await tokensOrCount(request, { ...chat, messages: kept }, work).catch(ifRefused)
    const most = middle === starts.length - 1 ? contextSize : room
    if (typeof tokens !== 'number' && tokens.length < most) {
      found = tokens
      high = middle
    } else low = middle + 1
  }
  return found
}

/** A template need not take what is left of a conversation that it took. */
function ifRefused(cause: unknown): number {
  if (LlmError.from(cause).code === 'invalid_request') return Number.POSITIVE_INFINITY
  throw cause
}

/** Their number alone where they are far too many. */
async function tokensOrCount(
  request: GenerateRequest,
  input: GenerateRequest['input'],
  work: Work,
): Promise<readonly Token[] | number> {
  const { model, signal } = work
  const tokens: Token[] = []
  const pieces = await piecesOf(request, input, work)
  // What surrounds a gap is text, whatever it looks like; a template of its own breaks it up where it spells tokens.
  const isPlain = input.kind === 'infill' && pieces.length > 1
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  let seen = 0
  try {
    for (const piece of pieces) {
      const isText = typeof piece === 'string'
      const more = isText ? await model.tokenize(piece, signal, { isPlain }) : known(piece, model)
      seen += piece.length
      const count = tokens.length + more.length
      if (count > far(model)) return Math.round((count * length) / seen)
      // Templates write it, too; behind other tokens it would begin another text.
      const again = isText && tokens.length > 0 && more[0] === model.bos
      for (const token of again ? more.slice(1) : more) tokens.push(token)
    }
  } catch (cause) {
    const { code, details } = LlmError.from(cause)
    if (code === 'context_length' && details.inputTokens !== undefined) return details.inputTokens
    throw cause
  }
  if (model.bos !== undefined && tokens[0] !== model.bos) tokens.unshift(model.bos)
  return tokens
}

async function piecesOf(
  request: GenerateRequest,
  input: GenerateRequest['input'],
  { model, renderer, signal }: Work,
): Promise<Pieces> {
  if (input.kind === 'text' && isRaw(input)) return input.prompt
  const { template } = model
  const go = goTemplateOf(input)
  const goTemplate = go && { goTemplate: go.source }
  if (input.kind === 'infill')
    return go?.uses.suffix
      ? [await renderer.render({ template, ...goTemplate, messages: [], options: {}, gap: input }, signal)]
      : aroundGap(input, model)
  const reasoning = toldReasoning(request, go)
  const options = {
    reasoning: reasoning === 'auto' ? undefined : reasoning,
    tools: shownTools(input),
    variables: input.templateOptions,
  }
  const job = { template, ...goTemplate, messages: messagesOf(input), options }
  const text = await renderer.render(job, signal)
  const ids = input.kind === 'text' ? input.prompt.filter((piece) => typeof piece !== 'string') : []
  return [...ids, text]
}

/**
 * Where a call is forced, all tools, whichever it may be: the answer is held to those, and a prompt that stays the same is
 * not read again.
 */
const shownTools = (input: GenerateRequest['input']): readonly Tool[] =>
  input.kind === 'chat' && input.toolChoice?.mode === 'required' ? (input.tools ?? []) : callableTools(input)

/** The order that models are trained for mostly: what they write comes behind both. */
function aroundGap({ prefix, suffix }: InfillInput, { name, infill }: Binding): Pieces {
  if (infill) return [[infill.prefix], prefix, [infill.suffix], suffix, [infill.middle]]
  throw invalidRequest(`The model "${name}" was not made to fill gaps: it has no tokens for that.`, {
    param: 'suffix',
  })
}

/** More tokens than these are not worth the work: they will not fit. */
const far = ({ contextSize }: Binding): number => 2 * contextSize

/** Throws `invalid_request` for ids that the model does not have. */
export function known(
  ids: readonly number[],
  { vocabularySize }: Pick<Binding, 'vocabularySize'>,
  param?: string,
): readonly Token[] {
  const unknown = ids.find((id) => id >= vocabularySize)
  if (unknown === undefined) return ids as readonly Token[]
  const message = `The model has no token ${unknown}: its vocabulary has ${vocabularySize}.`
  throw invalidRequest(message, param === undefined ? {} : { param })
}
