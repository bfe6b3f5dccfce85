/** The routes for hosts that speak the web's own `Request` and `Response`: Hono, Bun, Deno, Next. */
import { type ByteSize, toBytes } from '../units.ts'
import { readJson } from './body.ts'
import type { HttpRequest, HttpResponse } from './message.ts'
import { createMatcher, type RouteTable } from './route.ts'

export type FetchHandler = (request: Request) => Promise<Response>

/** Unknown paths and methods are answered, too. */
export function toFetchHandler<Context>(
  { routes, unrouted }: RouteTable<Context>,
  context: Context,
): FetchHandler {
  const match = createMatcher(routes)

  return async (request) => {
    const path = new URL(request.url).pathname
    const found = match(request.method, path)
    if (!('route' in found)) return toResponse(unrouted(readFetchRequest(request, path), found.allowed))
    const { route, params } = found
    return toResponse(await route.handle(readFetchRequest(request, path, params, route.bodyLimit), context))
  }
}

function readFetchRequest(
  request: Request,
  path: string,
  params: Readonly<Record<string, string>> = {},
  bodyLimit: ByteSize = '32mb',
): HttpRequest {
  return {
    method: request.method,
    path,
    params,
    signal: request.signal,
    header: (name) => request.headers.get(name) ?? undefined,
    json: () =>
      readJson(
        {
          chunks: request.body ?? nothing(),
          contentLength: request.headers.get('content-length'),
          contentEncoding: request.headers.get('content-encoding'),
        },
        toBytes(bodyLimit),
      ),
  }
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

function toResponse({ status, headers, body }: HttpResponse): Response {
  return new Response(body === null || typeof body === 'string' ? body : toStream(body), { status, headers })
}

/** Pulled frame by frame; cancelling it closes the source. */
function toStream(frames: AsyncIterable<string>): ReadableStream<Uint8Array> {
  const iterator = frames[Symbol.asyncIterator]()
  const encoder = new TextEncoder()
  return new ReadableStream({
    async pull(controller) {
      const { value, done } = await iterator.next()
      if (done) controller.close()
      else controller.enqueue(encoder.encode(value))
    },
    async cancel() {
      await iterator.return?.()
    },
  })
}
