/**
 * Finds texts with which `std::regex` could end a process. llama.cpp splits the text of BPE vocabularies into
 * words (pre-tokenization). Most vocabularies have a splitter written by hand. The others use `std::regex`,
 * which recurses for each character of a word, so that a long word overflows the stack.
 *
 * Sources in llama.cpp v0.5.0: `llm_tokenizer_bpe` in `src/llama-vocab.cpp`, `unicode_regex_split_custom` in
 * `src/unicode.cpp`.
 */

/** Metadata below `tokenizer.ggml` in a model file. */
interface TokenizerMetadata {
  /** Kind of the vocabulary. */
  readonly model?: unknown
  /** Name of the pre-tokenizer. */
  readonly pre?: unknown
  readonly tokens?: readonly string[]
  /** Types of the tokens. */
  readonly token_type?: readonly number[]
}

/** Length of the pieces that are checked, in characters. A word of twice this length counts as long. */
const pieceLength = 512
/**
 * Maximum number of special tokens in a text. llama.cpp compiles the regular expressions again for the text
 * between two of them, which takes up to 1 ms. So they block this process for 16 ms, little more than the text
 * of a slice (10 ms).
 */
const maxSpecialTokens = 16

export class RegexPreTokenizer {
  readonly #kinds: readonly RegExp[]
  readonly #specialStart: RegExp | undefined
  readonly #crashesOnWideSpace: boolean

  /** Returns `undefined` if llama.cpp does not use `std::regex` for the vocabulary, or only for single characters. */
  static of(metadata: TokenizerMetadata): RegexPreTokenizer | undefined {
    const { model, pre } = metadata
    return unsplitModels.has(model) || handWritten.has(pre) ? undefined : new RegexPreTokenizer(metadata)
  }

  private constructor(metadata: TokenizerMetadata) {
    const { model, pre } = metadata
    this.#kinds = kindsOf.get(pre) ?? defaultKinds
    this.#specialStart = createSpecialStart(metadata)
    this.#crashesOnWideSpace = pre === 'whitespace' && model !== pre
  }

  /** Whether the text could end this process, or block it for longer than a slice. */
  isRisky(text: string): boolean {
    return (
      this.measureLongWord(text) > 0 ||
      (this.#crashesOnWideSpace && wideSpace.test(text)) ||
      this.limitSlice(text) < text.length
    )
  }

  /** Length of the text before the first special token that is too many. */
  limitSlice(text: string, maxTokens = maxSpecialTokens): number {
    if (!this.#specialStart) return text.length
    let count = 0
    for (const { index } of text.matchAll(this.#specialStart)) if (++count > maxTokens) return index
    return text.length
  }

  /** Whether the text has at most one special token. Each further one takes up to 1 ms, however short the text is. */
  isUniform(text: string): boolean {
    return this.limitSlice(text, 1) === text.length
  }

  /**
   * Returns 0 if all words of the text are short. Else, returns the length of the longest word in characters,
   * at most two pieces too low.
   */
  measureLongWord(text: string): number {
    let [run, longestRun] = [0, 0]
    for (let start = 0; start + pieceLength <= text.length; start += pieceLength) {
      run = hasBreak(text.slice(start, start + pieceLength), this.#kinds) ? 0 : run + 1
      longestRun = Math.max(longestRun, run)
    }
    return longestRun * pieceLength
  }
}

/**
 * A word contains characters of one kind only, except for its first character and an ending such as `'ll`.
 * So it ends in a piece that has characters of two kinds.
 */
function hasBreak(piece: string, kinds: readonly RegExp[]): boolean {
  let found = 0
  for (const kind of kinds) if (kind.test(piece) && ++found === 2) return true
  return false
}

/** Types of tokens that llama.cpp finds before it splits the text: unknown, control, user-defined. */
const specialTypes: ReadonlySet<number | undefined> = new Set([2, 3, 4])

/** Matches where a special token could begin. */
function createSpecialStart({ tokens = [], token_type: types = [] }: TokenizerMetadata): RegExp | undefined {
  const starts = new Set<string>()
  for (const [id, text] of tokens.entries())
    if (specialTypes.has(types[id]) && text !== '') starts.add(escapePattern(text.slice(0, 4)))
  const first = [...new Set([...starts].map((start) => /^\\?./s.exec(start)?.[0]))].join('')
  return starts.size > 0 ? new RegExp(`(?=[${first}])(?=${[...starts].join('|')})`, 'g') : undefined
}

const escapePattern = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|-]/g, '\\$&')

/**
 * The pre-tokenizer `whitespace` expects a vocabulary of the same name, which drops white space. With another
 * vocabulary, an assertion of llama.cpp fails for a space beside other white space.
 */
const wideSpace = / [\s\x85]|[\s\x85] /

/** Kinds of vocabularies without a pre-tokenizer, or always with the same hand-written one (`gemma4`). */
const unsplitModels: ReadonlySet<unknown> = new Set([
  ...['llama', 'bert', 't5', 'rwkv', 'plamo2', 'gemma4', 'no_vocab', 'none'],
])

/**
 * Pre-tokenizers whose splitter is written by hand, except for regular expressions that match one character.
 * All others count as dangerous, also names that this version of llama.cpp does not know.
 */
const handWritten: ReadonlySet<unknown> = new Set([
  ...['gpt-2', 'phi-2', 'jina-es', 'jina-de', 'jina-v1-en', 'jina-v2-es', 'jina-v2-de', 'jina-v2-code'],
  ...['gigachat', 'a.x-4.0', 'mellum', 'modern-bert', 'roberta-bpe', 'exaone4', 'mpt', 'olmo', 'jais'],
  ...['trillion', 'granite-docling', 'starcoder', 'refact', 'command-r', 'smollm', 'codeshell', 'exaone'],
  ...['minerva-7b', 'mellum2', 'llama3', 'llama-v3', 'llama-bpe', 'falcon3', 'falcon-h1', 'pixtral'],
  ...['midm-2.0', 'lfm2', 'jina-v5-nano', 'dbrx', 'smaug-bpe', 'glm4', 'chatglm-bpe', 'stablelm2', 'qwen2'],
  ...['deepseek-r1-qwen', 'kormo', 'f2llmv2', 'megrez', 'hunyuan', 'solar-open', 'grok-2', 'qwen35'],
  ...['kimi-k2', 'laguna', 'gemma4', 'granite-embed-multi-311m', 'sarvam-moe'],
])

/**
 * Letters of scripts in wide use, a part of `\p{L}`. Only characters whose kind is certain are listed, here
 * and below: Node.js and llama.cpp know different versions of Unicode, and some pre-tokenizers count marks,
 * or the digits of other scripts, as letters.
 */
const letters = [
  'A-Za-z\\u00C0-\\u00D6\\u00D8-\\u00F6\\u00F8-\\u02AF\\u1E00-\\u1EFF', // Latin
  '\\u0391-\\u03A1\\u03A3-\\u03F5\\u0400-\\u0481\\u048A-\\u052F', // Greek, Cyrillic
  '\\u0531-\\u0556\\u0561-\\u0586\\u10D0-\\u10FA', // Armenian, Georgian
  '\\u05D0-\\u05EA\\u0620-\\u064A\\u0671-\\u06D3\\u1200-\\u1248', // Hebrew, Arabic, Ethiopic
  '\\u0904-\\u0939\\u0995-\\u09A8\\u0A13-\\u0A28\\u0A93-\\u0AA8', // Devanagari, Bengali, Gurmukhi, Gujarati
  '\\u0BAE-\\u0BB9\\u0C12-\\u0C28\\u0C92-\\u0CA8\\u0D12-\\u0D3A', // Tamil, Telugu, Kannada, Malayalam
  '\\u0E01-\\u0E30\\u0EAD-\\u0EB0\\u1000-\\u102A\\u1780-\\u17B3', // Thai, Lao, Myanmar, Khmer
  '\\u3041-\\u3096\\u30A1-\\u30FA\\u4E00-\\u9FA5\\uAC00-\\uD7A3', // Japanese, Chinese, Korean
].join('')
const digits = /[0-9]/
/** All other ASCII characters except the space, and the most frequent punctuation of Chinese and Japanese. */
const signs = '\\0-\\x1F!-/:-@\\[-`{-\\x7F、。！，：；？'

const defaultKinds: readonly RegExp[] = [new RegExp(`[${letters}]`), new RegExp(`[ ${signs}]`), digits]

/** In these words, letters and other signs mix. Each list has the characters between words, and the others. */
const signWords = [/[\t-\r (|.,!?)、。，]/, /[^\t-\r (|.,!?)、。，]/]

/** Kinds of characters by pre-tokenizer. */
const kindsOf: ReadonlyMap<unknown, readonly RegExp[]> = new Map([
  // Single spaces are part of a word.
  ['exaone-moe', [new RegExp(`[${letters}]`), new RegExp(`[${signs}]`), digits]],
  ['poro-chat', signWords],
  ['bloom', signWords],
  ['gpt3-finnish', signWords],
  ['viking', signWords],
  ['whitespace', [/[\t-\r ]/, /[^\t-\r ]/]],
])
