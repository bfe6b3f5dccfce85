/** A route of the app that streams an answer: GET /api/story?about=Ada */
import { findUser, llm } from '../../../llm.js'

export async function GET(request) {
  const user = findUser(request)
  if (!user) return Response.json({ error: 'log in first' }, { status: 401 })
  const about = new URL(request.url).searchParams.get('about') ?? ''
  if (!/^\p{L}{1,40}$/u.test(about))
    return Response.json({ error: 'about: expected a name' }, { status: 400 })
  const prompt = `Tell me a short story about ${about}.`
  // `request.signal` aborts when the client disconnects, so that the model stops.
  const story = llm.chat(prompt, {
    model: 'tiny',
    stream: true,
    caller: { id: user },
    signal: request.signal,
  })
  return new Response(encode(story), { headers: { 'content-type': 'text/plain; charset=utf-8' } })
}

/** A stream that reads no further piece than its client. When the client leaves, it ends the answer. */
function encode(story) {
  const pieces = story[Symbol.asyncIterator]()
  const encoder = new TextEncoder()
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await pieces.next()
      if (done) controller.close()
      else controller.enqueue(encoder.encode(value))
    },
    cancel: () => pieces.return(),
  })
}
