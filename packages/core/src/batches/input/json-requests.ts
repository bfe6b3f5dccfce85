/** Reads the list `requests` of a JSON object piece by piece, so that a body of any size takes little memory. */
import { Tokenizer, TokenParser, TokenType } from '@streamparser/json'
import { invalidRequest, LlmError } from '../../errors.ts'

export interface JsonRequestLimits {
  /** Size of the body. */
  readonly maxBytes: number
  /** Size of one request. */
  readonly maxItemBytes: number
}

/**
 * Yields the entries of `requests`. Other fields are ignored. Throws an `LlmError`: `invalid_request` if the body is not a
 * JSON object with such a list, `too_large` if it exceeds a limit.
 */
export async function* readJsonRequests(
  chunks: AsyncIterable<Uint8Array>,
  { maxBytes, maxItemBytes }: JsonRequestLimits,
): AsyncGenerator<unknown> {
  const parser = new RequestsParser()
  let bytes = 0
  /** Bytes since the last entry. */
  let pendingBytes = 0
  for await (const chunk of chunks) {
    bytes += chunk.length
    if (bytes > maxBytes)
      throw new LlmError('too_large', `The request body is larger than ${maxBytes} bytes.`)
    // A large chunk may come from an earlier body parser.
    for (let from = 0; from < chunk.length; from += pieceBytes) {
      const piece = chunk.subarray(from, from + pieceBytes)
      const entries = parser.write(piece)
      pendingBytes = entries.length > 0 ? 0 : pendingBytes + piece.length
      if (pendingBytes > maxItemBytes) throw itemTooLarge(parser.count, maxItemBytes)
      yield* entries
    }
  }
  parser.end()
}

class RequestsParser {
  /** Number of entries so far. */
  count = 0
  readonly #tokenizer = new Tokenizer()
  readonly #values = new TokenParser({ paths: ['$.requests.*'], keepStack: false })
  #depth = 0
  #hasTokens = false
  #isObject = false
  #hasList = false
  /** The last token in the object itself, and the name of its current field. */
  #lastToken: { readonly type: TokenType; readonly value: unknown } | undefined
  #field: unknown
  #entries: unknown[] = []

  constructor() {
    this.#tokenizer.onToken = (token) => {
      const { token: type } = token
      this.#hasTokens = true
      if (this.#depth === 1) this.#onField(type, token.value)
      if (type === TokenType.LEFT_BRACE || type === TokenType.LEFT_BRACKET) {
        if (this.#depth === 0) this.#isObject = type === TokenType.LEFT_BRACE
        if (++this.#depth > maxDepth) throw tooDeep()
      } else if (type === TokenType.RIGHT_BRACE || type === TokenType.RIGHT_BRACKET) this.#depth--
      this.#values.write(token)
    }
    this.#values.onValue = ({ value }) => {
      this.count++
      this.#entries.push(value)
    }
  }

  /** Throws if the field `requests` is no list. The parser itself would emit the list only as a whole. */
  #onField(type: TokenType, value: unknown): void {
    const last = this.#lastToken
    this.#lastToken = { type, value }
    if (type === TokenType.COLON) this.#field = last?.value
    if (last?.type !== TokenType.COLON || this.#field !== 'requests') return
    if (type !== TokenType.LEFT_BRACKET) throw notAList()
    this.#hasList = true
  }

  /** Returns the entries that end in this piece. */
  write(piece: Uint8Array): readonly unknown[] {
    this.#run(() => this.#tokenizer.write(piece))
    const entries = this.#entries
    this.#entries = []
    return entries
  }

  /** Throws if the body is incomplete, or has no list. */
  end(): void {
    this.#run(() => {
      if (!this.#tokenizer.isEnded) this.#tokenizer.end()
      if (this.#depth > 0 || !this.#hasTokens) throw new Error('The JSON text is incomplete.')
    })
    if (!this.#isObject) throw invalidRequest('The request body has to be a JSON object.', { issue: 'type' })
    if (!this.#hasList)
      throw invalidRequest('requests: Field required', { param: 'requests', issue: 'missing' })
  }

  #run(work: () => void): void {
    try {
      work()
    } catch (cause) {
      if (LlmError.is(cause)) throw cause
      throw new LlmError('invalid_request', 'The request body is not valid JSON.', {}, { cause })
    }
  }
}

/** Levels of nesting, as in other JSON bodies. */
const maxDepth = 128
/** Bounds the time for which one piece blocks the event loop. */
const pieceBytes = 64 * 1024

const notAList = (): LlmError =>
  invalidRequest('requests: Input should be a valid list', { param: 'requests', issue: 'type' })

const tooDeep = (): LlmError => invalidRequest(`The request body is nested deeper than ${maxDepth} levels.`)

const itemTooLarge = (index: number, maxBytes: number): LlmError =>
  new LlmError('too_large', `requests.${index}: A request is larger than ${maxBytes} bytes.`)
