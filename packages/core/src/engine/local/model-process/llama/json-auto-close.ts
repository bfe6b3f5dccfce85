/**
 * Closes open JSON when the model wants to end and the grammar does not allow it yet. A small model would otherwise
 * continue without an end.
 */
import type { LlamaGrammarEvaluationState, LlamaModel, Token } from 'node-llama-cpp'
import { type Addon, stateOf } from './addon.ts'

/** Tokens that show where in a JSON text the grammar is, and that close it. */
export interface JsonTokens {
  readonly quote: Token
  /** Closers of objects and arrays. */
  readonly brackets: readonly Token[]
  /** Allowed in strings, and in literals, which cannot be closed. */
  readonly letters: readonly Token[]
  /** Allowed in reasoning and around tool calls. */
  readonly newline: Token
}

/** Returns `undefined` where the vocabulary lacks one of them. */
export function findJsonTokens(model: Pick<LlamaModel, 'tokenize' | 'detokenize'>): JsonTokens | undefined {
  // Some vocabularies add a space at the start of a text.
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

/** State for one output. */
export class JsonAutoClose {
  readonly #jsonTokens: JsonTokens
  readonly #stateApi: GrammarStateApi
  /** State after the emitted tokens. The sampler's own state includes tokens that a closer has replaced. */
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
   * Returns the token that closes what is open, or `undefined` to keep the sampled token.
   * @param likeliest most likely of all tokens, also of those that the grammar excludes
   */
  chooseCloser(likeliest: Token): Token | undefined {
    if (this.#isEnd(likeliest)) this.#shouldClose = !this.#isAllowed(likeliest)
    const closer = this.#shouldClose ? this.#findCloser() : undefined
    // One closer is enough: the model may want to continue, such as with another property.
    if (closer !== undefined) this.#shouldClose = false
    return closer
  }

  accept(token: Token): void {
    if (!this.#isEnd(token)) this.#stateApi.acceptGrammarEvaluationStateToken(stateOf(this.#grammar), token)
  }

  /** State for a sampler that continues after the emitted tokens. */
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
