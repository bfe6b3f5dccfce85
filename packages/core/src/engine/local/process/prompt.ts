/** From a request to what the model reads: the text that its template makes, and the tokens of it. */
import type { Token } from 'node-llama-cpp'
import { contextLength, invalidRequest, LlmError } from '../../../errors.ts'
import { type ChatInput, type GenerateRequest, messagesOf, type TextInput } from '../../request.ts'
import type { Work } from './answer.ts'
import type { Binding } from './binding.ts'

/** What the prompt is made with. */
export type Source = Pick<Work, 'model' | 'renderer'>

/** Text and tokens, in order. */
type Pieces = readonly (string | readonly number[])[]

export async function promptText(request: GenerateRequest, source: Source): Promise<string> {
  const { model } = source
  const pieces = await piecesOf(request.input, request.reasoning, source)
  return pieces
    .map((piece) => (typeof piece === 'string' ? piece : model.spell(known(piece, model))))
    .join('')
}

/** Throws `context_length` for a prompt that leaves no room for an answer. */
export async function promptTokens(request: GenerateRequest, source: Source): Promise<readonly Token[]> {
  const { input, overflow = 'error' } = request
  const { contextSize } = source.model
  const tokens = await tokensOrCount(request, input, source)
  if (Array.isArray(tokens) && tokens.length < contextSize) return tokens
  const shorter =
    input.kind === 'chat' && overflow === 'truncate' ? await truncated(request, input, source) : undefined
  if (shorter) return shorter
  throw contextLength(typeof tokens === 'number' ? tokens : tokens.length, contextSize)
}

/** How long a prompt is, also one that is longer than the context. Nothing is read. */
export async function countTokens(request: GenerateRequest, source: Source): Promise<number> {
  const tokens = await tokensOrCount(request, request.input, source)
  return typeof tokens === 'number' ? tokens : tokens.length
}

/**
 * As many of the newest messages as there is room for, with some left for the answer, and none of them
 * without the question before it; system messages stay.
 */
async function truncated(
  request: GenerateRequest,
  { messages }: ChatInput,
  source: Source,
): Promise<readonly Token[] | undefined> {
  const system = messages.filter(({ role }) => role === 'system')
  const turns = messages.filter(({ role }) => role !== 'system')
  const starts = turns.flatMap(({ role }, index) =>
    index > 0 && (role === 'user' || index === turns.length - 1) ? [index] : [],
  )
  const { contextSize } = source.model
  const room = contextSize - Math.min(request.maxTokens ?? contextSize, contextSize >> 2)
  let found: readonly Token[] | undefined
  for (let low = 0, high = starts.length; low < high; ) {
    const middle = (low + high) >> 1
    const kept = [...system, ...turns.slice(starts[middle])]
    const tokens = await tokensOrCount(request, { kind: 'chat', messages: kept }, source)
    if (typeof tokens !== 'number' && tokens.length < room) {
      found = tokens
      high = middle
    } else low = middle + 1
  }
  return found
}

/** Their number alone where they are far too many. */
async function tokensOrCount(
  { reasoning }: GenerateRequest,
  input: ChatInput | TextInput,
  source: Source,
): Promise<readonly Token[] | number> {
  const { model } = source
  const tokens: Token[] = []
  try {
    for (const piece of await piecesOf(input, reasoning, source)) {
      for (const token of typeof piece === 'string' ? await model.tokenize(piece) : known(piece, model))
        tokens.push(token)
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
  input: ChatInput | TextInput,
  reasoning: boolean | undefined,
  { model, renderer }: Source,
): Promise<Pieces> {
  if (input.kind === 'text' && input.template === false) return input.prompt
  const text = await renderer.render(model.template, messagesOf(input), reasoning)
  const ids = input.kind === 'text' ? input.prompt.filter((piece) => typeof piece !== 'string') : []
  return [...ids, text]
}

function known(ids: readonly number[], { vocabularySize }: Binding): readonly Token[] {
  const unknown = ids.find((id) => id >= vocabularySize)
  if (unknown === undefined) return ids as readonly Token[]
  throw invalidRequest(`The model has no token ${unknown}: its vocabulary has ${vocabularySize}.`)
}
