/** What a token says by itself, and its bytes: it may be a part of a character. */
import type { Token } from 'node-llama-cpp'
import type { SampledToken } from '../../../events.ts'
import type { RuntimeModel } from '../model.ts'
import type { Logprobs } from './decoder.ts'

export type TokenTexts = Pick<RuntimeModel, 'detokenize' | 'vocabularyTextOf'>

export function toSampledToken(id: Token, { logprob, top }: Logprobs, model: TokenTexts): SampledToken {
  return {
    ...{ id, ...tokenText(id, model), logprob },
    top: top.map(([id, logprob]) => ({ id, ...tokenText(id, model), logprob })),
  }
}

/** @param before some tokenizers leave out the space in front of a text, and one space may be all of it */
export function tokenText(
  token: Token,
  model: TokenTexts,
  before: readonly Token[] = [token, token],
): { text: string; bytes: number[] } {
  const text = model.detokenize([token], before, true)
  const bytes = text.includes('\uFFFD') ? parseTokenBytes(model.vocabularyTextOf(token)) : undefined
  return { text, bytes: bytes ?? [...Buffer.from(text)] }
}

/** As vocabularies write what is no text: `<0xE2>`, or byte by byte in an alphabet of its own. */
function parseTokenBytes(vocabularyText: string): number[] | undefined {
  const [, byte] = /^<0x([0-9A-F]{2})>$/.exec(vocabularyText) ?? []
  if (byte !== undefined) return [Number.parseInt(byte, 16)]
  const bytes = Array.from(vocabularyText, (letter) => alphabet.get(letter))
  return bytes.every((byte) => byte !== undefined) ? bytes : undefined
}

/** GPT-2's, which all byte-level vocabularies have: what prints stands for itself, the others follow from U+0100 on. */
const alphabet = ((): ReadonlyMap<string, number> => {
  const letters = new Map<string, number>()
  let next = 0x100
  for (let byte = 0; byte < 0x100; byte++) {
    const prints = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad)
    letters.set(String.fromCharCode(prints ? byte : next++), byte)
  }
  return letters
})()
