import { expect, test } from 'vitest'
import { readEvents, readLines } from './streams.ts'

/** A response whose body arrives in chunks of a few bytes, which split characters and lines. */
function inChunks(text: string, size = 5): Response {
  const bytes = new TextEncoder().encode(text)
  let at = 0
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller) {
      if (at >= bytes.length) return controller.close()
      controller.enqueue(bytes.slice(at, at + size))
      at += size
    },
  })
  return new Response(body)
}

async function collect(values: AsyncIterable<unknown>): Promise<readonly unknown[]> {
  const collected: unknown[] = []
  for await (const value of values) collected.push(value)
  return collected
}

test('lines are read across chunks, also the last one without a line break', async () => {
  const values = await collect(readLines(inChunks('{"text":"Grüße 👋"}\n\n{"done":true}')))

  expect(values).toEqual([{ text: 'Grüße 👋' }, { done: true }])
})

test('events are read across chunks, without comments and the end of the stream', async () => {
  const stream = ': heartbeat\n\nevent: a\ndata: {"text":"Grüße 👋"}\n\ndata: {"n":2}\n\ndata: [DONE]\n\n'

  expect(await collect(readEvents(inChunks(stream)))).toEqual([{ text: 'Grüße 👋' }, { n: 2 }])
})

test('a reader that leaves cancels the body', async () => {
  let isCanceled = false
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull: (controller) => controller.enqueue(new TextEncoder().encode('{"n":1}\n')),
    cancel: () => {
      isCanceled = true
    },
  })
  for await (const _ of readLines(new Response(body))) break

  expect(isCanceled).toBe(true)
})
