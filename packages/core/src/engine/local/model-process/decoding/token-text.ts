/** Text and bytes of a single token, which may be a part of a character. */
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

/**
 * @param before preceding tokens. Without them, some tokenizers drop a leading space, which may be the whole
 * text
 */
export function tokenText(
  token: Token,
  model: TokenTexts,
  before: readonly Token[] = [token, token],
): { text: string; bytes: number[] } {
  const text = model.detokenize([token], before, true)
  const bytes = text.includes('\uFFFD') ? parseTokenBytes(model.vocabularyTextOf(token)) : undefined
  return { text, bytes: bytes ?? [...Buffer.from(text)] }
}

/**
 * Parses the bytes of a token that is not valid text. Some vocabularies write such bytes as `<0xE2>`, others
 * write every byte as a letter of the GPT-2 alphabet.
 */
function parseTokenBytes(vocabularyText: string): number[] | undefined {
  const [, byte] = /^<0x([0-9A-F]{2})>$/.exec(vocabularyText) ?? []
  if (byte !== undefined) return [Number.parseInt(byte, 16)]
  const bytes = Array.from(vocabularyText, (letter) => alphabet.get(letter))
  return bytes.every((byte) => byte !== undefined) ? bytes : undefined
}

/**
 * The GPT-2 alphabet, which all byte-level vocabularies use. Printable bytes stand for themselves, and other
 * bytes are written as letters from U+0100 on.
 */
const alphabet = ((): ReadonlyMap<string, number> => {
  const letters = new Map<string, number>()
  let next = 0x100
  for (let byte = 0; byte < 0x100; byte++) {
    const prints = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad)
    letters.set(String.fromCharCode(prints ? byte : next++), byte)
  }
  return letters
})()
