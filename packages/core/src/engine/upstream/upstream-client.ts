/** Sends requests to one upstream server, over kept connections. */
import { setTimeout as delay } from 'node:timers/promises'
import type { EventSourceMessage } from 'eventsource-parser'
import { type Dispatcher, Pool } from 'undici'
import { isRecord } from '../../util/is-record.ts'
import { maxTextLength } from './error-cause.ts'
import type { ResolvedUpstreamOptions } from './options.ts'
import { type BodySplitter, EventSplitter, LineSplitter } from './response-streams.ts'
import { invalidResponse, toConnectionError, toInBandError, toRefusal } from './upstream-errors.ts'

export interface UpstreamRequest {
  /** Path below the base URL. It must not depend on what a caller sends. */
  readonly path: string
  /** @default a `GET` request */
  readonly json?: object
  /** Model that the caller asked for, which errors name. */
  readonly model: string
  readonly signal: AbortSignal
  /** @default those that the API needs */
  readonly headers?: Readonly<Record<string, string>>
}

/** Bytes of a response that is read as a whole, such as 10,000 embeddings. */
const maxJsonBytes = 256 * 1024 * 1024
const maxHeaderBytes = 16 * 1024
/**
 * Attempts of one request. A server may close a kept connection while the request is on its way: llama-server does so
 * after each stream without saying so. A further attempt is made only if nothing of a response has arrived.
 */
const maxAttempts = 3
const closedCodes: readonly unknown[] = ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']

export class UpstreamClient {
  readonly #options: ResolvedUpstreamOptions
  readonly #headersFor: (apiKey: string | undefined) => Readonly<Record<string, string>>
  readonly #pool: Pool
  readonly #toBody: (json: object) => string

  constructor(
    options: ResolvedUpstreamOptions,
    headersFor: (apiKey: string | undefined) => Readonly<Record<string, string>>,
    pool = createPool(options),
    toBody: (json: object) => string = JSON.stringify,
  ) {
    this.#options = options
    this.#headersFor = headersFor
    this.#pool = pool
    this.#toBody = toBody
  }

  /** Returns a client with further headers and the same connections. */
  withHeaders(headers: Readonly<Record<string, string>>): UpstreamClient {
    const headersFor = (apiKey: string | undefined) => ({ ...this.#headersFor(apiKey), ...headers })
    return new UpstreamClient(this.#options, headersFor, this.#pool, this.#toBody)
  }

  /** Returns a client that writes its requests with this function, and has the same connections. */
  withBodies(toBody: (json: object) => string): UpstreamClient {
    return new UpstreamClient(this.#options, this.#headersFor, this.#pool, toBody)
  }

  /** Sends a request and reads the JSON of the response. Throws the errors of `Engine`, or an `AbortError`. */
  async readJson(request: UpstreamRequest): Promise<unknown> {
    return this.#parse(await this.#open(request), request)
  }

  /** Resolves when the server has answered with status 200. Throws as `readJson` does. */
  async probe(path: string, signal: AbortSignal): Promise<void> {
    const { body } = await this.#open({ path, model: '', signal })
    await body.dump()
  }

  /**
   * Yields the server-sent events of each chunk of the response together, so that a reader waits once per chunk. Ends without
   * an error when the signal aborts.
   */
  readEvents(request: UpstreamRequest): AsyncGenerator<readonly EventSourceMessage[]> {
    return this.#read(request, new EventSplitter(), (response) => this.#expectStream(response, request))
  }

  /** As `readEvents`, for a response of lines. */
  readLines(request: UpstreamRequest): AsyncGenerator<readonly string[]> {
    return this.#read(request, new LineSplitter())
  }

  async close(): Promise<void> {
    await this.#pool.destroy()
  }

  async *#read<Part>(
    request: UpstreamRequest,
    splitter: BodySplitter<Part>,
    check?: (response: Dispatcher.ResponseData) => Promise<void>,
  ): AsyncGenerator<readonly Part[]> {
    try {
      const response = await this.#open(request)
      await check?.(response)
      for await (const chunk of response.body) {
        const parts = splitter.split(chunk)
        if (parts.length > 0) yield parts
      }
      yield splitter.end()
    } catch (cause) {
      if (!request.signal.aborted) throw toConnectionError(cause)
    }
  }

  /** Some servers report an error with status 200. */
  async #expectStream(response: Dispatcher.ResponseData, request: UpstreamRequest): Promise<void> {
    if (!/^application\/json\b/.test(String(response.headers['content-type']))) return
    const body = await this.#parse(response, request)
    throw isRecord(body) && body.error
      ? toInBandError(body.error, request.model)
      : invalidResponse('it is no stream')
  }

  /** Reads the JSON of a response. */
  async #parse(response: Dispatcher.ResponseData, { signal }: UpstreamRequest): Promise<unknown> {
    const chunks: Uint8Array[] = []
    let size = 0
    try {
      for await (const chunk of response.body) {
        size += chunk.byteLength
        if (size > maxJsonBytes) throw invalidResponse('it is too long')
        chunks.push(chunk)
      }
    } catch (cause) {
      signal.throwIfAborted()
      throw toConnectionError(cause)
    }
    try {
      return JSON.parse(Buffer.concat(chunks).toString())
    } catch {
      throw invalidResponse('it is no JSON')
    }
  }

  /** Resolves to a response with status 200. */
  async #open(request: UpstreamRequest): Promise<Dispatcher.ResponseData> {
    const response = await this.#send(request)
    const { statusCode, headers, body } = response
    if (statusCode === 200) return response
    const retryAfter = headers['retry-after']
    throw toRefusal(
      {
        status: statusCode,
        retryAfter: Array.isArray(retryAfter) ? retryAfter[0] : retryAfter,
        contentType: String(headers['content-type'] ?? ''),
        text: await readStart(body),
      },
      request.model,
    )
  }

  async #send({ path, json, signal, headers }: UpstreamRequest): Promise<Dispatcher.ResponseData> {
    const { baseUrl, apiKey, headers: own } = this.#options
    const options: Dispatcher.RequestOptions = {
      path: baseUrl.pathname.replace(/\/$/, '') + path,
      method: json ? 'POST' : 'GET',
      headers: {
        ...this.#headersFor(await apiKey()),
        ...headers,
        ...own,
        ...(json && { 'content-type': 'application/json' }),
      },
      ...(json && { body: this.#toBody(json) }),
      signal,
    }
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#pool.request(options)
      } catch (cause) {
        signal.throwIfAborted()
        if (attempt === maxAttempts || !closedCodes.includes((cause as { readonly code?: unknown }).code))
          throw toConnectionError(cause)
        // A server that has just closed one connection may be about to close the others.
        await delay(attempt, undefined, { signal })
      }
    }
  }
}

const createPool = (options: ResolvedUpstreamOptions): Pool =>
  new Pool(options.baseUrl.origin, {
    connect: { timeout: options.connectTimeoutMs },
    headersTimeout: options.responseTimeoutMs,
    bodyTimeout: options.stallTimeoutMs,
    maxHeaderSize: maxHeaderBytes,
  })

/** Reads the beginning of an error. Never rejects. */
async function readStart(body: Dispatcher.ResponseData['body']): Promise<string> {
  let text = ''
  try {
    const decoder = new TextDecoder()
    for await (const chunk of body) {
      text += decoder.decode(chunk as Uint8Array, { stream: true })
      if (text.length >= maxTextLength) break
    }
  } catch {
    // The status says enough.
  }
  return text.slice(0, maxTextLength)
}
