/**
 * Connects a command to the server that the user names, or else to one at the default address. If none
 * listens there, runs the routes in this process.
 */
import type { Llm } from '@modelmount/core'
import { serverUrl } from './host.ts'

export interface ServerOptions {
  /** Server address in the syntax of `$OLLAMA_HOST`. If it is set, no other server is tried. */
  readonly host?: string
  /** Takes precedence over the port of `host` and `$OLLAMA_HOST`. */
  readonly port?: number
  /** `false` runs the routes in this process, even if a server listens. */
  readonly server?: boolean
  /** `host:port` of the registry in the model name of the command. */
  readonly registry?: string | undefined
}

/** An error response of the server, with its text. */
export class ServerError extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

interface Sent {
  /** Objects are sent as JSON. */
  readonly body?: object | ReadableStream<Uint8Array>
  readonly contentType?: string
  readonly signal?: AbortSignal
}

export class Server {
  /** Without a trailing slash. */
  readonly url: string
  readonly #handle: (request: Request) => Promise<Response>
  readonly #llm: Llm | undefined

  /** @param llm set if the routes run in this process */
  constructor(url: string, handle: (request: Request) => Promise<Response>, llm?: Llm) {
    this.url = url
    this.#handle = handle
    this.#llm = llm
  }

  /**
   * Whether the routes run in this process. This process then has only the models that this command loaded.
   */
  get isOwn(): boolean {
    return this.#llm !== undefined
  }

  /** Throws `ServerError` for an error response, and an `AbortError` when the signal aborts. */
  async send(method: string, path: string, { body, contentType, signal }: Sent = {}): Promise<Response> {
    const request = new Request(this.url + path, {
      method,
      ...(contentType !== undefined && { headers: { 'content-type': contentType } }),
      ...(body && { body: body instanceof ReadableStream ? body : JSON.stringify(body), duplex: 'half' }),
      ...(signal && { signal }),
    })
    const response = await this.#handle(request).catch((cause) => {
      throw signal?.aborted ? cause : unreachable(this.url, cause)
    })
    if (response.ok) return response
    const reason = await reasonOf(response)
    throw new ServerError(
      response.status,
      response.status === 401 && !this.isOwn ? withKeyHint(reason) : reason,
    )
  }

  async get<Answer>(path: string, signal?: AbortSignal): Promise<Answer> {
    return (await (await this.send('GET', path, { ...(signal && { signal }) })).json()) as Answer
  }

  async post<Answer>(path: string, body: object): Promise<Answer> {
    return (await (await this.send('POST', path, { body: { stream: false, ...body } })).json()) as Answer
  }

  /**
   * Yields the objects of a streamed answer. Throws like `send`, and throws `ServerError` for an error in the
   * stream.
   */
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

/** Connects to a server, runs the work of a command, and closes routes that run in this process. */
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

/** Like `withServer`, for work that outlives the command, and so needs a running server. */
export const withRunningServer = (
  { host, port }: Pick<ServerOptions, 'host' | 'port'>,
  work: (server: Server) => Promise<void>,
): Promise<void> =>
  work(new Server(serverUrl(host ?? process.env.OLLAMA_HOST?.trim() ?? '', port), fetchWithKey))

async function connect({ host, port, server, registry }: ServerOptions): Promise<Server> {
  const named = host ?? process.env.OLLAMA_HOST?.trim()
  const url = serverUrl(named ?? '', port)
  if (server !== false && (named || port !== undefined || (await answers(url))))
    return new Server(url, fetchWithKey)
  // Loaded on use, because a command that calls a server does not need core.
  const { openOwnRoutes } = await import('./own-routes.ts')
  const { handle, llm } = await openOwnRoutes(registry)
  return new Server('http://localhost', handle, llm)
}

const withKeyHint = (reason: string): string =>
  apiKey()
    ? `${reason} The key is from $MODELMOUNT_API_KEY.`
    : `${reason} On the command line, set $MODELMOUNT_API_KEY.`

const apiKey = (): string | undefined => process.env.MODELMOUNT_API_KEY?.trim() || undefined

/** Sends the API key, if one is set. On redirects to another host, `fetch` drops the header. */
function fetchWithKey(request: Request): Promise<Response> {
  const key = apiKey()
  if (key) request.headers.set('authorization', `Bearer ${key}`)
  return fetch(request)
}

/** Time limit for a server that listens but does not answer. */
const timeoutMs = 2_000

const answers = (url: string): Promise<boolean> =>
  fetch(url, { method: 'HEAD', signal: AbortSignal.timeout(timeoutMs) }).then(
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
  const decoder = new TextDecoder()
  for await (const bytes of bytesOf(body)) yield decoder.decode(bytes, { stream: true })
  yield decoder.decode()
}

/** Yields the body of a response. Throws if the server closes the connection before its end. */
export async function* bytesOf(body: Response['body']): AsyncGenerator<Uint8Array> {
  try {
    yield* body ?? []
  } catch (cause) {
    // The message of `fetch` is only "terminated".
    throw cause instanceof TypeError ? new Error('the server closed the connection', { cause }) : cause
  }
}

/** Returns the text of an error of any API, or of the error page of a proxy. */
async function reasonOf(response: Response): Promise<string> {
  const text = await response.text()
  try {
    const { error } = JSON.parse(text) as { readonly error?: string | { readonly message?: unknown } }
    if (typeof error === 'string') return error
    if (typeof error?.message === 'string') return error.message
  } catch {
    // Not JSON: the text itself is the reason.
  }
  return text.trim() || `${response.status} ${response.statusText}`
}

function unreachable(url: string, cause: unknown): Error {
  const { code, message } = ((cause as Error).cause ?? cause) as NodeJS.ErrnoException
  return new Error(`no server answers at ${url} (${code ?? message}). Start one: modelmount serve`, { cause })
}
