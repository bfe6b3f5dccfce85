/**
 * Closes open JSON when the model wants to end the output and the grammar does not allow the end yet.
 * Otherwise, a small model would continue without an end.
 */
import type { LlamaGrammarEvaluationState, LlamaModel, Token } from 'node-llama-cpp'
import { type Addon, stateOf } from './addon.ts'

/**
 * Tokens that close JSON, and tokens that the grammar allows only in some places. These show where in the
 * JSON the output is.
 */
export interface JsonTokens {
  readonly quote: Token
  /** Closing brackets of objects and arrays. */
  readonly brackets: readonly Token[]
  /** Tokens that the grammar allows in strings. Some are also allowed in literals, which cannot be closed. */
  readonly letters: readonly Token[]
  /** The grammar allows a new line in reasoning and around tool calls. */
  readonly newline: Token
}

/** Returns `undefined` if the vocabulary lacks one of the tokens. */
export function findJsonTokens(model: Pick<LlamaModel, 'tokenize' | 'detokenize'>): JsonTokens | undefined {
  // Takes the last token, since some vocabularies add a space at the start of a text.
  const lastOf = (text: string): Token | undefined => {
    const token = model.tokenize(text).at(-1)
    const isWhole = token !== undefined && model.detokenize([token], false, [token]) === text.at(-1)
    return isWhole ? token : undefined
  }
  const newline = lastOf('\n')
  const [quote, ...others] = ['\n"', '\n}', '\n]', '\n)', '\na'].map(lastOf)
  const known = others.filter((token) => token !== undefined)
  if (newline === undefined || quote === undefined || known.length < others.length) return undefined
  return { quote, brackets: known.slice(0, 2), letters: known.slice(2), newline }
}

type GrammarStateApi = Pick<
  Addon['AddonSampler'],
  'canBeNextTokenForGrammarEvaluationState' | 'acceptGrammarEvaluationStateToken'
>

/** Chooses closing tokens for one output. */
export class JsonAutoClose {
  readonly #jsonTokens: JsonTokens
  readonly #stateApi: GrammarStateApi
  /**
   * Grammar state after the emitted tokens. The state of the sampler includes tokens that a closing token has
   * replaced.
   */
  readonly #grammar: LlamaGrammarEvaluationState
  readonly #isEnd: (token: Token) => boolean
  #shouldClose = false

  constructor(
    jsonTokens: JsonTokens,
    stateApi: GrammarStateApi,
    grammar: LlamaGrammarEvaluationState,
    isEnd: (token: Token) => boolean,
  ) {
    this.#jsonTokens = jsonTokens
    this.#stateApi = stateApi
    this.#grammar = grammar
    this.#isEnd = isEnd
  }

  /**
   * Returns the token that closes the open JSON value, or `undefined` to keep the sampled token.
   * @param likeliest most likely token, even if the grammar excludes it
   */
  chooseCloser(likeliest: Token): Token | undefined {
    if (this.#isEnd(likeliest)) this.#shouldClose = !this.#isAllowed(likeliest)
    const closer = this.#shouldClose ? this.#findCloser() : undefined
    // Only one closing token is emitted, since the model may want to continue, for example with another
    // property.
    if (closer !== undefined) this.#shouldClose = false
    return closer
  }

  accept(token: Token): void {
    if (!this.#isEnd(token)) this.#stateApi.acceptGrammarEvaluationStateToken(stateOf(this.#grammar), token)
  }

  /** Returns a grammar state for a sampler that continues after the emitted tokens. */
  cloneState(): LlamaGrammarEvaluationState {
    return this.#grammar.clone()
  }

  #findCloser(): Token | undefined {
    const { quote, brackets, letters, newline } = this.#jsonTokens
    const isAllowed = (token: Token): boolean => this.#isAllowed(token)
    if (isAllowed(newline)) return undefined
    // Inside a string, brackets are text. Outside, a quote opens a string.
    return letters.some(isAllowed) ? [quote].find(isAllowed) : brackets.find(isAllowed)
  }

  #isAllowed(token: Token): boolean {
    return this.#stateApi.canBeNextTokenForGrammarEvaluationState(stateOf(this.#grammar), token)
  }
}
