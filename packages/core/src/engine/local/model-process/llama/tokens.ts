/** The tokens of a model: which are special, and text to tokens and back. */
import type { LlamaModel, Token } from 'node-llama-cpp'
import { type ChatTemplate, chatMl } from '../../../../template/jinja.ts'
import type { Tokens } from '../model.ts'
import { Tokenizer } from '../prompt/tokenizer.ts'

export function tokensOf(model: LlamaModel, contextSize: number): Tokens {
  const tokenizer = new Tokenizer((text) => model.tokenize(text, true), contextSize)
  const plainly = new Tokenizer((text) => model.tokenize(text), contextSize)
  const vocabulary = vocabularyOf(model)
  let ends: readonly Token[] | undefined
  return {
    vocabularySize: vocabulary.length,
    template: chatTemplate(model),
    bos: beginning(model),
    end: ending(model),
    start: model.tokens.bos ?? model.tokens.eos ?? undefined,
    eot: model.tokens.eot ?? model.tokens.eos ?? undefined,
    infill: infillTokens(model),
    ends: () => (ends ??= [...model.iterateAllTokens()].filter((token) => model.isEogToken(token))),
    tokenize: (text, signal, { isPlain = false, enough } = {}) =>
      (isPlain ? plainly : tokenizer).tokens(text, signal, enough),
    detokenize: (tokens, before, withControl = false) => model.detokenize(tokens, withControl, before),
    spell: (tokens) => model.detokenize(tokens, true),
    written: (token) => vocabulary[token] ?? '',
  }
}

/** As the file writes it, token by token. */
const vocabularyOf = ({ vocabularyType, fileInfo: { metadata } }: LlamaModel): readonly string[] =>
  vocabularyType === 'none' ? [] : (metadata.tokenizer?.ggml?.tokens ?? [])

function chatTemplate(model: LlamaModel): ChatTemplate {
  const { bosString, eosString } = model.tokens
  let special: readonly string[] | undefined
  return {
    source: model.fileInfo.metadata.tokenizer?.chat_template ?? chatMl,
    bosToken: bosString ?? '',
    eosToken: eosString ?? '',
    // Where the first conversation is rendered: large vocabularies take a while, and not every model is for that.
    get specialTokens() {
      special ??= specialTokens(model)
      return special
    },
  }
}

/** Those that the tokenizer finds in a text, though they are none: unlike those that a vocabulary defines for itself. */
function specialTokens(model: LlamaModel): readonly string[] {
  const spellings: string[] = []
  for (const token of model.iterateAllTokens()) {
    const { control, unknown } = model.getTokenAttributes(token)
    if (control || unknown) spellings.push(model.detokenize([token], true))
  }
  return spellings
}

function beginning({ tokens: { bos, shouldPrependBosToken } }: LlamaModel): Token | undefined {
  return bos !== null && shouldPrependBosToken ? bos : undefined
}

/** As llama.cpp does it: word pieces stand between two tokens always. */
function ending({ tokens, vocabularyType, fileInfo }: LlamaModel): Token | undefined {
  if (vocabularyType === 'wpm') return tokens.sep ?? undefined
  // The library does not ask a model that begins with nothing.
  const ends = tokens.shouldAppendEosToken || fileInfo.metadata.tokenizer?.ggml?.add_eos_token === true
  return ends ? (tokens.eos ?? undefined) : undefined
}

function infillTokens({ tokens: { infill } }: LlamaModel): Tokens['infill'] {
  const { prefix, suffix, middle } = infill
  return prefix !== null && suffix !== null && middle !== null ? { prefix, suffix, middle } : undefined
}
