/** Reads a stream of server-sent events, as a client would. */
import { createParser } from 'eventsource-parser'

/** One event of a stream. */
export interface ServerSentEvent {
  /** Name of the event. Undefined if it has none. */
  readonly event: string | undefined
  /** Data of the event: its lines, joined by line breaks. */
  readonly data: string
}

/** Parses the events of a response. @param body the body of a `Response`, or a complete text */
export async function* readEvents(body: AsyncIterable<Uint8Array> | string): AsyncGenerator<ServerSentEvent> {
  const events: ServerSentEvent[] = []
  const parser = createParser({ onEvent: ({ event, data }) => events.push({ event, data }) })
  const decoder = new TextDecoder()
  for await (const chunk of typeof body === 'string' ? [body] : body) {
    parser.feed(typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true }))
    yield* events.splice(0)
  }
}
