/** Reads JSON that is still being generated. */
import type { Tokenizer, TokenParser } from '@streamparser/json'

/** A value at the end of the text, and the objects and arrays around it. */
interface OpenValue {
  readonly value?: unknown
  readonly key?: string | number | undefined
  readonly parent?: object | undefined
  readonly stack: readonly { readonly key?: string | number | undefined; readonly value?: unknown }[]
}

/** Loads the parser at its first use, so that apps without structured output start faster. */
export async function openPartialJson(): Promise<PartialJson> {
  const { Tokenizer, TokenParser } = await import('@streamparser/json')
  return new PartialJson(
    new Tokenizer({ emitPartialTokens: true }),
    new TokenParser({ emitPartialValues: true }),
  )
}

class PartialJson {
  /**
   * The value so far. Strings may be incomplete, everything else is complete. Undefined before the first value. Each
   * value is a new object, which shares its closed parts with the ones before.
   */
  value: unknown
  readonly #tokenizer: Tokenizer
  #last: OpenValue | undefined
  #isInvalid = false

  constructor(tokenizer: Tokenizer, parser: TokenParser) {
    this.#tokenizer = tokenizer
    tokenizer.onToken = (token) => parser.write(token)
    parser.onValue = ({ value, key, parent, stack, partial }) => {
      const isOmitted = partial && typeof value !== 'string'
      this.#last = { key, parent, stack, ...(!isOmitted && { value }) } as OpenValue
    }
  }

  /** After invalid JSON, the value stays as it is. */
  push(text: string): void {
    if (this.#isInvalid) return
    try {
      this.#tokenizer.write(text)
    } catch {
      this.#isInvalid = true
    }
    if (this.#last) this.value = toSnapshot(this.#last)
  }
}

/** Copies the open objects and arrays, which the parser still changes. */
function toSnapshot({ value, key, parent, stack }: OpenValue): unknown {
  if (!parent) return value
  let snapshot = withEntry(parent, key, value)
  for (const outer of stack.slice(1).toReversed())
    snapshot = withEntry(outer.value as object, outer.key, snapshot)
  return snapshot
}

function withEntry(container: object, key: string | number | undefined, value: unknown): object {
  if (!Array.isArray(container))
    return value === undefined ? { ...container } : { ...container, [`${key}`]: value }
  const copy = [...container]
  if (value !== undefined) copy[Number(key)] = value
  return copy
}
