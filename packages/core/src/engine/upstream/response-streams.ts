/** Splits the body of a response into server-sent events or lines, with a bound for each. */
import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { invalidResponse } from './upstream-errors.ts'

/** Characters of one event or line. A long tool call in one piece, or an embedding, is below. */
const maxPieceLength = 4 * 1024 * 1024

/** Splits one body. Its methods throw an `LlmError` `upstream` for a part that is too long. */
export interface BodySplitter<Part> {
  /** Returns the parts that this chunk completes. */
  split(chunk: Uint8Array): readonly Part[]
  /** Returns the parts that the end of the body completes. */
  end(): readonly Part[]
}

export class EventSplitter implements BodySplitter<EventSourceMessage> {
  readonly #decoder = new TextDecoder()
  readonly #parser = createParser({
    onEvent: (event) => this.#events.push(event),
    onError: (error) => {
      // A field that the format does not define is ignored.
      if (error.type === 'max-buffer-size-exceeded') this.#isTooLong = true
    },
    maxBufferSize: maxPieceLength,
  })
  #events: EventSourceMessage[] = []
  #isTooLong = false

  split(chunk: Uint8Array): readonly EventSourceMessage[] {
    this.#parser.feed(this.#decoder.decode(chunk, { stream: true }))
    if (this.#isTooLong) throw invalidResponse('one event is too long')
    const events = this.#events
    if (events.length > 0) this.#events = []
    return events
  }

  end(): readonly EventSourceMessage[] {
    return []
  }
}

/** The last line may lack its line break. Empty lines are left out. */
export class LineSplitter implements BodySplitter<string> {
  readonly #decoder = new TextDecoder()
  #rest = ''

  split(chunk: Uint8Array): readonly string[] {
    const lines = (this.#rest + this.#decoder.decode(chunk, { stream: true })).split('\n')
    this.#rest = lines.pop() ?? ''
    if (this.#rest.length > maxPieceLength) throw invalidResponse('one line is too long')
    return lines.filter(hasText)
  }

  end(): readonly string[] {
    return [this.#rest + this.#decoder.decode()].filter(hasText)
  }
}

const hasText = (line: string): boolean => line.trim() !== ''
