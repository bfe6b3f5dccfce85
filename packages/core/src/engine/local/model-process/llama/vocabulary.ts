import type { LlamaModel, Token } from 'node-llama-cpp'
import { type ChatTemplate, chatMl } from '../../../../template/jinja.ts'
import { IsolatedTokenizer } from '../isolated-tokenizer.ts'
import type { ModelVocabulary, StepCounter } from '../model.ts'
import { RegexPreTokenizer } from '../prompt/regex-pre-tokenizer.ts'
import { Tokenizer } from '../prompt/tokenizer.ts'
import type { Turns } from '../workers/turns.ts'

/**
 * @param progress counts tokenized texts, or slices of them
 * @param turns shared by everything that blocks this thread
 */
export function openVocabulary(
  model: LlamaModel,
  modelPath: string,
  contextSize: number,
  progress: StepCounter,
  turns: Turns,
): ModelVocabulary {
  const isolated = new IsolatedTokenizer(
    modelPath,
    RegexPreTokenizer.of(model.fileInfo.metadata.tokenizer?.ggml ?? {}),
    progress,
  )
  const openTokenizer = (parseSpecial: boolean): Tokenizer =>
    new Tokenizer(
      (text) => {
        progress.steps++
        return model.tokenize(text, parseSpecial)
      },
      contextSize,
      turns,
      {
        isNeeded: (text) => isolated.isNeeded(text),
        limitSlice: (text) => isolated.limitSlice(text),
        isUniform: (text) => isolated.isUniform(text),
        tokenize: (text, budget) => isolated.tokenize(text, parseSpecial, budget),
      },
    )
  const [tokenizer, plainTokenizer] = [openTokenizer(true), openTokenizer(false)]
  const vocabularyTexts = readVocabularyTexts(model)
  let eogTokens: readonly Token[] | undefined
  return {
    vocabularySize: vocabularyTexts.length,
    template: chatTemplateOf(model),
    bos: bosTokenOf(model),
    end: endTokenOf(model),
    start: model.tokens.bos ?? model.tokens.eos ?? undefined,
    eot: model.tokens.eot ?? model.tokens.eos ?? undefined,
    infill: infillTokensOf(model),
    getEogTokens: () =>
      (eogTokens ??= [...model.iterateAllTokens()].filter((token) => model.isEogToken(token))),
    tokenize: (text, budget, { isPlain = false, stopAfter } = {}) =>
      (isPlain ? plainTokenizer : tokenizer).tokenize(text, budget, stopAfter),
    detokenize: (tokens, before, withControl = false) => model.detokenize(tokens, withControl, before),
    detokenizeWithSpecial: (tokens) => model.detokenize(tokens, true),
    vocabularyTextOf: (token) => vocabularyTexts[token] ?? '',
  }
}

/** Texts of all tokens, as stored in the model file. */
const readVocabularyTexts = ({ vocabularyType, fileInfo: { metadata } }: LlamaModel): readonly string[] =>
  vocabularyType === 'none' ? [] : (metadata.tokenizer?.ggml?.tokens ?? [])

function chatTemplateOf(model: LlamaModel): ChatTemplate {
  const { bosString, eosString } = model.tokens
  let special: readonly string[] | undefined
  return {
    source: model.fileInfo.metadata.tokenizer?.chat_template ?? chatMl,
    bosToken: bosString ?? '',
    eosToken: eosString ?? '',
    // Computed on first use. Large vocabularies take a while, and pooling models need no special tokens.
    get specialTokens() {
      special ??= findSpecialTokens(model)
      return special
    },
  }
}

/** Texts of the control and unknown tokens. In a prompt, the tokenizer turns these texts into the tokens. */
function findSpecialTokens(model: LlamaModel): readonly string[] {
  const spellings: string[] = []
  for (const token of model.iterateAllTokens()) {
    const { control, unknown } = model.getTokenAttributes(token)
    if (control || unknown) spellings.push(model.detokenize([token], true))
  }
  return spellings
}

function bosTokenOf({ tokens: { bos, shouldPrependBosToken } }: LlamaModel): Token | undefined {
  return bos !== null && shouldPrependBosToken ? bos : undefined
}

/** As in llama.cpp, WordPiece texts always have a start and an end token. */
function endTokenOf({ tokens, vocabularyType, fileInfo }: LlamaModel): Token | undefined {
  if (vocabularyType === 'wpm') return tokens.sep ?? undefined
  // node-llama-cpp does not read this key for a model without a start token.
  const hasEos = tokens.shouldAppendEosToken || fileInfo.metadata.tokenizer?.ggml?.add_eos_token === true
  return hasEos ? (tokens.eos ?? undefined) : undefined
}

function infillTokensOf({ tokens: { infill } }: LlamaModel): ModelVocabulary['infill'] {
  const { prefix, suffix, middle } = infill
  return prefix !== null && suffix !== null && middle !== null ? { prefix, suffix, middle } : undefined
}
