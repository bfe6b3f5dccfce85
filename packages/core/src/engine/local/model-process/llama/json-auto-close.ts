/**
 * What a small model says in JSON behind the place where it wants to end, and may not, goes on for ever. So what is open
 * is closed as soon as the grammar lets it be: that leads to the end.
 */
import type { LlamaGrammarEvaluationState, LlamaModel, Token } from 'node-llama-cpp'
import { type Addon, stateOf } from './addon.ts'

/** Tokens that tell the places in JSON apart, and close what is open there. */
export interface JsonTokens {
  readonly quote: Token
  /** Behind objects and arrays. */
  readonly brackets: readonly Token[]
  /** Stand in texts; beside them in words that cannot be closed. */
  readonly letters: readonly Token[]
  /** Stands in thoughts and around calls. */
  readonly newline: Token
}

/** Nothing where the vocabulary has no token for one of them. */
export function findJsonTokens(model: Pick<LlamaModel, 'tokenize' | 'detokenize'>): JsonTokens | undefined {
  // At the beginning of a text, some vocabularies add a space.
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

/** Of one answer. */
export class JsonAutoClose {
  readonly #jsonTokens: JsonTokens
  readonly #stateApi: GrammarStateApi
  /** As it is behind what was said. The one that a sampler goes on with knows what was drawn in vain, too. */
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
   * The token that closes what is open; nothing where what is drawn is said.
   * @param likeliest of all tokens, in the grammar or not
   */
  chooseCloser(likeliest: Token): Token | undefined {
    if (this.#isEnd(likeliest)) this.#shouldClose = !this.#isAllowed(likeliest)
    const closer = this.#shouldClose ? this.#findCloser() : undefined
    // What may come next, such as another property, it may want to say.
    if (closer !== undefined) this.#shouldClose = false
    return closer
  }

  accept(token: Token): void {
    if (!this.#isEnd(token)) this.#stateApi.acceptGrammarEvaluationStateToken(stateOf(this.#grammar), token)
  }

  /** For a sampler that goes on behind what was said. */
  cloneState(): LlamaGrammarEvaluationState {
    return this.#grammar.clone()
  }

  #findCloser(): Token | undefined {
    const { quote, brackets, letters, newline } = this.#jsonTokens
    const isAllowed = (token: Token): boolean => this.#isAllowed(token)
    if (isAllowed(newline)) return undefined
    // In a text brackets are letters, too, and beside texts a quote opens one.
    return letters.some(isAllowed) ? [quote].find(isAllowed) : brackets.find(isAllowed)
  }

  #isAllowed(token: Token): boolean {
    return this.#stateApi.canBeNextTokenForGrammarEvaluationState(stateOf(this.#grammar), token)
  }
}
