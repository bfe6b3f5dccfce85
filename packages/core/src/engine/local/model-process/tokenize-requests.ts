/** Texts to tokens and back, for whoever asks for just that. The model itself is left alone. */
import { setImmediate } from 'node:timers/promises'
import type { Token } from 'node-llama-cpp'
import type { DetokenizeRequest, TokenizeRequest } from '../../tokens.ts'
import type { Result } from '../ipc/protocol.ts'
import { Detokenizer } from './decoding/detokenize.ts'
import type { Binding } from './model.ts'
import { known } from './prompt/prompt.ts'
import type { Work } from './run-request.ts'

/** Of tokens: some milliseconds of work, and a message of some kilobytes. */
const slice = 4_096

/** Ends quietly when the signal aborts. */
export async function tokenize(
  { text, addSpecial = false, parseSpecial = true }: TokenizeRequest,
  { model, progress, signal }: Work,
  say: (result: Result) => void,
): Promise<void> {
  const enough = Number.POSITIVE_INFINITY
  const found = await model.tokenize(text, signal, { isPlain: !parseSpecial, enough })
  const tokens = addSpecial ? withSpecial(found, model) : found
  for (let start = 0; start < tokens.length && !signal.aborted; start += slice) {
    say(tokens.slice(start, start + slice))
    progress.steps++
    await setImmediate()
  }
}

/** Ends quietly when the signal aborts. */
export async function detokenize(
  { tokens }: DetokenizeRequest,
  { model, progress, signal }: Work,
  say: (result: Result) => void,
): Promise<void> {
  const all = known(tokens, model, 'tokens')
  const detokenizer = new Detokenizer(model, [], true)
  for (let start = 0; start < all.length && !signal.aborted; start += slice) {
    const part = all.slice(start, start + slice)
    say(part.map((token) => detokenizer.push(token)).join(''))
    progress.steps++
    await setImmediate()
  }
  say(detokenizer.flush('shown'))
}

/** Between the tokens that every text of this model begins and ends with, each of them once. */
export function withSpecial(
  tokens: readonly Token[],
  { bos, end }: Pick<Binding, 'bos' | 'end'>,
): readonly Token[] {
  const begun = bos === undefined || tokens[0] === bos ? tokens : [bos, ...tokens]
  return end === undefined || begun.at(-1) === end ? begun : [...begun, end]
}
