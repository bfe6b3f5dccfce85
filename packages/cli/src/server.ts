/** The server that a command speaks to: the one that is named, the one that listens, or the routes in this very process. */
import { createLlm, type Llm, routesFor } from '@modelmount/core'
import { type FetchHandler, toFetchHandler } from '@modelmount/core/http'
import { serverUrl } from './host.ts'
import { complain } from './output.ts'

export interface ServerOptions {
  /** As in `$OLLAMA_HOST`; nothing else is tried then. */
  readonly host?: string
  /** False: none is asked, even where one listens. */
  readonly server?: boolean
  /** `host:port` of the registry that the command names. */
  readonly registry?: string | undefined
}

/** What the server says against it, in its words. */
export class ServerError extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

interface Sent {
  /** An object goes as JSON. */
  readonly body?: object | ReadableStream<Uint8Array>
  readonly signal?: AbortSignal
}

export class Server {
  readonly #url: string
  readonly #handle: FetchHandler
  readonly #llm: Llm | undefined

  /** @param llm where the routes are in this process */
  constructor(url: string, handle: FetchHandler, llm?: Llm) {
    this.#url = url
    this.#handle = handle
    this.#llm = llm
  }

  /** Nobody listens: what is loaded here, only this command has loaded. */
  get isOwn(): boolean {
    return this.#llm !== undefined
  }

  /** Throws `ServerError`, and an `AbortError` when the signal aborts. */
  async send(method: string, path: string, { body, signal }: Sent = {}): Promise<Response> {
    const request = new Request(this.#url + path, {
      method,
      ...(body && { body: body instanceof ReadableStream ? body : JSON.stringify(body), duplex: 'half' }),
      ...(signal && { signal }),
    })
    const response = await this.#handle(request).catch((cause) => {
      throw signal?.aborted ? cause : unreachable(this.#url, cause)
    })
    if (response.ok) return response
    const reason = await reasonOf(response)
    throw new ServerError(
      response.status,
      response.status === 401 && !this.isOwn ? withKeyHint(reason) : reason,
    )
  }

  async get<Answer>(path: string): Promise<Answer> {
    return (await (await this.send('GET', path)).json()) as Answer
  }

  async post<Answer>(path: string, body: object): Promise<Answer> {
    return (await (await this.send('POST', path, { body: { stream: false, ...body } })).json()) as Answer
  }

  /** A streamed answer, object by object. Throws as `send` does, also where the error comes in the stream. */
  async *stream<Line extends object>(
    path: string,
    body: object,
    signal?: AbortSignal,
  ): AsyncGenerator<Line, void> {
    const response = await this.send('POST', path, { body, ...(signal && { signal }) })
    for await (const text of linesOf(response)) {
      const line = JSON.parse(text) as Line | { readonly error: string }
      if ('error' in line) throw new ServerError(response.status, line.error)
      yield line
    }
  }

  async close(): Promise<void> {
    await this.#llm?.close()
  }
}

/** A command's work with its server, which is let go of afterwards. */
export async function withServer(
  options: ServerOptions,
  work: (server: Server) => Promise<void>,
): Promise<void> {
  const server = await connect(options)
  try {
    await work(server)
  } finally {
    await server.close()
  }
}

async function connect({ host, server, registry }: ServerOptions): Promise<Server> {
  const named = host ?? process.env.OLLAMA_HOST?.trim()
  const url = serverUrl(named ?? '')
  if (server !== false && (named || (await answers(url)))) return new Server(url, fetchWithKey)
  const llm = await createLlm({
    scopes: ['inference', 'models'],
    // Nobody else asks this process: the registry that is named is the one that is meant.
    ...(registry && { store: { registries: [registry], privateRegistries: [registry] } }),
    logger: { warn: complain, error: complainOfHidden },
  })
  const handle = toFetchHandler(routesFor(['ollama']), llm, { remoteAddress: () => '127.0.0.1' })
  return new Server('http://localhost', handle, llm)
}

/** Of other errors the command itself says what the answer says. */
function complainOfHidden(details: { readonly err?: { readonly code?: unknown } }, message: string): void {
  if (details.err?.code !== 'upstream') complain(details, message)
}

const withKeyHint = (reason: string): string =>
  apiKey()
    ? `${reason} It is that of $MODELMOUNT_API_KEY.`
    : `${reason} Here: set $MODELMOUNT_API_KEY to a key.`

const apiKey = (): string | undefined => process.env.MODELMOUNT_API_KEY?.trim() || undefined

/** For servers that ask for one. Where they send us on to another host, `fetch` leaves this header out. */
function fetchWithKey(request: Request): Promise<Response> {
  const key = apiKey()
  if (key) request.headers.set('authorization', `Bearer ${key}`)
  return fetch(request)
}

/** So long somebody who listens but does not answer is waited for. */
const patienceMs = 2_000

const answers = (url: string): Promise<boolean> =>
  fetch(url, { method: 'HEAD', signal: AbortSignal.timeout(patienceMs) }).then(
    () => true,
    () => false,
  )

async function* linesOf({ body }: Response): AsyncGenerator<string> {
  let rest = ''
  for await (const text of textsOf(body)) {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  if (rest) yield rest
}

async function* textsOf(body: Response['body']): AsyncGenerator<string> {
  try {
    yield* body?.pipeThrough(new TextDecoderStream()) ?? []
  } catch (cause) {
    // What `fetch` says of it tells nobody anything.
    throw cause instanceof TypeError ? new Error('the server broke off its answer', { cause }) : cause
  }
}

/** Of Ollama's errors, or of whoever stands before the server. */
async function reasonOf(response: Response): Promise<string> {
  const text = await response.text()
  try {
    const { error } = JSON.parse(text) as { readonly error?: unknown }
    if (typeof error === 'string') return error
  } catch {
    // Then it is said as it is.
  }
  return text.trim() || `${response.status} ${response.statusText}`
}

function unreachable(url: string, cause: unknown): Error {
  const { code, message } = ((cause as Error).cause ?? cause) as NodeJS.ErrnoException
  return new Error(`no server answers at ${url} (${code ?? message}). Start one: modelmount serve`, { cause })
}
