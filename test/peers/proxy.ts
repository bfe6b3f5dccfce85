/** Serves the API of llama-server by that of Modelmount: rewrites the spellings of requests and responses. */
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { json as readJson, text as readText } from 'node:stream/consumers'
import { type Listening, listen } from '../support/listen.ts'
import {
  type Exchange,
  errorSpelling,
  type Json,
  preflightSpelling,
  type Server,
  spellingOf,
} from './spellings.ts'

/** Serves on the port of the flags. @param url that of Modelmount */
export const serveLlamaServerApi = (url: string, server: Server): Promise<Listening> =>
  listen(
    (req, res) => {
      if (req.url === '/health') res.end('{"status":"ok"}')
      else answer(req, res, url, server).catch((error: unknown) => res.destroy(error as Error))
    },
    {},
    Number(server.flags.port),
  )

async function answer(req: IncomingMessage, res: ServerResponse, url: string, server: Server): Promise<void> {
  const { path, spelling } = spellingOf(req.url ?? '/')
  const sent = req.method === 'POST' ? ((await readJson(req)) as Json) : undefined
  const exchange: Exchange = { ...server, sent: sent ?? {}, ask: (path, body) => ask(`${url}${path}`, body) }
  const body = sent && JSON.stringify(spelling.request(sent, server))
  const response = await forward(req, `${url}${path}`, body, res)
  const { statusCode = 500, headers } = response
  const { 'content-length': _, 'transfer-encoding': __, ...others } = headers
  const head = (): ServerResponse => res.writeHead(statusCode, others)
  if (req.method === 'OPTIONS') {
    response.resume()
    // Pages do not see this status, and a browser obeys the headers: both servers refuse a page by omitting them.
    res.writeHead(200, preflightSpelling(others)).end()
  } else if (headers['content-type']?.startsWith('text/event-stream')) {
    head()
    for await (const frame of framesOf(response))
      res.write(toFrame(frame, (data) => spelling.chunk(data, exchange)))
    res.end()
  } else if (headers['content-type']?.startsWith('application/json')) {
    const received = JSON.parse(await readText(response)) as Json
    const rewritten = statusCode < 400 ? await spelling.response(received, exchange) : errorSpelling(received)
    head().end(JSON.stringify(rewritten))
  } else {
    head()
    response.pipe(res)
  }
}

/** Sends a request to Modelmount. It ends when the client disconnects. */
const forward = (req: IncomingMessage, url: string, body: string | undefined, res: ServerResponse) =>
  new Promise<IncomingMessage>((resolve, reject) => {
    const headers = { ...req.headers }
    if (body !== undefined) headers['content-length'] = `${Buffer.byteLength(body)}`
    const forwarded = request(url, { method: req.method, headers }, resolve).on('error', reject)
    res.once('close', () => forwarded.destroy())
    forwarded.end(body)
  })

async function ask(url: string, body: Json): Promise<Json> {
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  return (await response.json()) as Json
}

async function* framesOf(stream: IncomingMessage): AsyncGenerator<string> {
  let rest = ''
  for await (const text of stream.setEncoding('utf8')) {
    const frames = `${rest}${text}`.split('\n\n')
    rest = frames.pop() ?? ''
    yield* frames
  }
}

/** Rewrites the data of a server-sent event. Other lines, and the end of OpenAI's streams, stay. */
const toFrame = (frame: string, rewrite: (data: Json) => Json): string =>
  `${frame.replace(/^data: (\{.*\})$/m, (_, data: string) => `data: ${JSON.stringify(rewrite(JSON.parse(data) as Json))}`)}\n\n`
