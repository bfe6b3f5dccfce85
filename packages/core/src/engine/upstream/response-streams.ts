/** Splits the body of a response into server-sent events or lines, with a bound for each. */
import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { invalidResponse } from './upstream-errors.ts'

/** Characters of one event or line. A long tool call in one piece, or an embedding, is below. */
const maxPieceLength = 4 * 1024 * 1024

/** Yields the events of each chunk together, so that a reader waits once per chunk. */
export async function* readEvents(
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<readonly EventSourceMessage[]> {
  let events: EventSourceMessage[] = []
  let isTooLong = false
  const parser = createParser({
    onEvent: (event) => events.push(event),
    onError: (error) => {
      // A field that the format does not define is ignored.
      if (error.type === 'max-buffer-size-exceeded') isTooLong = true
    },
    maxBufferSize: maxPieceLength,
  })
  const decoder = new TextDecoder()
  for await (const chunk of body) {
    parser.feed(decoder.decode(chunk, { stream: true }))
    if (isTooLong) throw invalidResponse('one event is too long')
    if (events.length === 0) continue
    yield events
    events = []
  }
}

/** Yields the complete lines of each chunk together. The last line may lack its line break. */
export async function* readLines(body: AsyncIterable<Uint8Array>): AsyncGenerator<readonly string[]> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of body) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > maxPieceLength) throw invalidResponse('one line is too long')
    const complete = lines.filter((line) => line.trim() !== '')
    if (complete.length > 0) yield complete
  }
  rest += decoder.decode()
  if (rest.trim() !== '') yield [rest]
}
