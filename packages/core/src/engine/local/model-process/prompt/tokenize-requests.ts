/** Serves tokenize and detokenize requests. They need the vocabulary only, not the weights. */
import { isUtf8 } from 'node:buffer'
import { setImmediate } from 'node:timers/promises'
import type { Token } from 'node-llama-cpp'
import type { DetokenizeRequest, TokenizeRequest, TokenPiece } from '../../../tokens.ts'
import type { CallResult } from '../../ipc/messages.ts'
import { Detokenizer } from '../decoding/detokenize.ts'
import { tokenText } from '../decoding/token-text.ts'
import type { RuntimeModel } from '../model.ts'
import type { RunContext } from '../run-context.ts'
import { checkTokenIds } from './prompt.ts'

/** Tokens per result message. They take a few milliseconds, and the message has some tens of kilobytes. */
const tokensPerSlice = 4_096

/** Stops without an error when the signal aborts. */
export async function tokenize(
  { text, addSpecial = false, parseSpecial = true }: TokenizeRequest,
  { model, progress, budget, signal }: RunContext,
  emit: (result: CallResult) => void,
): Promise<void> {
  const stopAfter = Number.POSITIVE_INFINITY
  const found = await model.tokenize(text, budget, { isPlain: !parseSpecial, stopAfter })
  const tokens = addSpecial ? addSpecialTokens(found, model) : found
  for (let start = 0; start < tokens.length && !signal.aborted; start += tokensPerSlice) {
    emit(tokens.slice(start, start + tokensPerSlice))
    progress.steps++
    await setImmediate()
  }
}

/** Stops without an error when the signal aborts. */
export async function detokenize(
  { tokens }: DetokenizeRequest,
  { model, progress, signal }: RunContext,
  emit: (result: CallResult) => void,
): Promise<void> {
  const all = checkTokenIds(tokens, model, 'tokens')
  const detokenizer = new Detokenizer(model, [], true)
  for (let start = 0; start < all.length && !signal.aborted; start += tokensPerSlice) {
    const part = all.slice(start, start + tokensPerSlice)
    emit(part.map((token) => detokenizer.push(token)).join(''))
    progress.steps++
    await setImmediate()
  }
  emit(detokenizer.flush('shown'))
}

/** Stops without an error when the signal aborts. */
export async function tokenPieces(
  { tokens }: DetokenizeRequest,
  { model, progress, signal }: RunContext,
  emit: (result: CallResult) => void,
): Promise<void> {
  const all = checkTokenIds(tokens, model, 'tokens')
  for (let start = 0; start < all.length && !signal.aborted; start += tokensPerSlice) {
    emit(all.slice(start, start + tokensPerSlice).map((token) => toPiece(token, model)))
    progress.steps++
    await setImmediate()
  }
}

function toPiece(token: Token, model: RuntimeModel): TokenPiece {
  const { text, bytes } = tokenText(token, model)
  return isUtf8(Uint8Array.from(bytes)) ? text : bytes
}

/** Adds the tokens that every text of this model begins and ends with, unless the text has them already. */
export function addSpecialTokens(
  tokens: readonly Token[],
  { bos, end }: Pick<RuntimeModel, 'bos' | 'end'>,
): readonly Token[] {
  const withBos = bos === undefined || tokens[0] === bos ? tokens : [bos, ...tokens]
  return end === undefined || withBos.at(-1) === end ? withBos : [...withBos, end]
}
