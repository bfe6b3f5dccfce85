/** Reads the streams of the public APIs. */
import { EventSourceParserStream } from 'eventsource-parser/stream'

type Bytes = ReadableStream<Uint8Array<ArrayBuffer>>

/** Yields the data of server-sent events, except for the `[DONE]` that ends streams of the OpenAI API. */
export async function* readEvents({ body }: { readonly body: Bytes | null }): AsyncGenerator<unknown> {
  if (body === null) return
  const events = body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream())
  for await (const { data } of chunksOf(events)) if (data !== '[DONE]') yield JSON.parse(data)
}

/** Yields the values of JSON lines. */
export async function* readLines({ body }: { readonly body: Bytes | null }): AsyncGenerator<unknown> {
  if (body === null) return
  let rest = ''
  for await (const text of chunksOf(body.pipeThrough(new TextDecoderStream()))) {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line.trim() !== '') yield JSON.parse(line)
  }
  if (rest.trim() !== '') yield JSON.parse(rest)
}

/** Safari cannot iterate over a `ReadableStream`. Cancels the stream when the reader leaves. */
async function* chunksOf<Chunk>(stream: ReadableStream<Chunk>): AsyncGenerator<Chunk> {
  const reader = stream.getReader()
  try {
    for (let step = await reader.read(); !step.done; step = await reader.read()) yield step.value
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}
