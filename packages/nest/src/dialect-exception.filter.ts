/** Renders exceptions of the app's guards, pipes and interceptors as errors of the route's dialect. */
import { type Llm, LlmError, type LlmErrorCode } from '@modelmount/core'
import { type DialectTable, isLlm } from '@modelmount/core/adapter'
import type { HttpResponse } from '@modelmount/core/http'
import {
  type ArgumentsHost,
  Catch,
  type ExceptionFilter,
  HttpException,
  Inject,
  Logger,
  type Type,
} from '@nestjs/common'
import { type LlmRequest, readRequest } from './llm.request.ts'
import { type LlmResponse, rawResponse, sendResponse } from './llm.response.ts'
import { LLM } from './llm.tokens.ts'

/**
 * Creates the filter of one route. It is a class, so that Nest injects the `Llm`.
 *
 * @param pattern the path of the route in the route table, without prefixes
 */
export function dialectExceptionFilter(
  renderError: DialectTable['renderError'],
  pattern: string,
): Type<ExceptionFilter> {
  @Catch()
  class RouteExceptionFilter extends DialectExceptionFilter {
    constructor(@Inject(LLM) llm: Llm) {
      super(
        isLlm(llm)
          ? (req, res, error) => renderError(readRequest(req, res, pattern), error, llm)
          : () => overriddenByFake,
      )
    }
  }
  return RouteExceptionFilter
}

/** The answer of our routes in a test that overrides `LLM` by an object with some methods. */
const overriddenByFake: HttpResponse = {
  status: 500,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({
    error: 'These routes need an Llm of createLlm(), and LLM is overridden by another object.',
  }),
}

type Render = (req: LlmRequest, res: LlmResponse, error: LlmError) => HttpResponse

class DialectExceptionFilter implements ExceptionFilter {
  readonly #render: Render
  readonly #logger = new Logger('ExceptionsHandler')

  constructor(render: Render) {
    this.#render = render
  }

  async catch(exception: unknown, host: ArgumentsHost): Promise<void> {
    const [req, res] = host.getArgs<[LlmRequest, LlmResponse]>()
    const raw = rawResponse(res)
    // The response was sent already, for example by a timeout middleware.
    if (raw.writableEnded) return
    // Like Nest, logs all details of an unexpected error, and shows none to the client.
    if (!isExpected(exception)) this.#logger.error(exception)
    if (raw.headersSent) return void raw.destroy()

    const response = this.#render(req, res, toLlmError(exception))
    const status = exception instanceof HttpException ? exception.getStatus() : response.status
    await sendResponse(res, { ...response, status })
  }
}

const isExpected = (exception: unknown): boolean =>
  exception instanceof HttpException || LlmError.from(exception).code !== 'internal'

function toLlmError(exception: unknown): LlmError {
  if (!(exception instanceof HttpException)) return LlmError.from(exception)
  const status = exception.getStatus()
  const code = codes[status] ?? (status < 500 ? 'invalid_request' : 'internal')
  return new LlmError(code, messageOf(exception), {}, { cause: exception })
}

/** `ValidationPipe` puts a list of messages into the response. The exception itself has a general message. */
function messageOf(exception: HttpException): string {
  const { message } = exception.getResponse() as { readonly message?: unknown }
  return Array.isArray(message) ? message.join(', ') : exception.message
}

const codes: Readonly<Record<number, LlmErrorCode>> = {
  401: 'authentication',
  402: 'quota',
  403: 'permission',
  404: 'not_found',
  405: 'method_not_allowed',
  408: 'timeout',
  409: 'conflict',
  413: 'too_large',
  429: 'rate_limit',
  502: 'upstream',
  503: 'overloaded',
  504: 'upstream',
}
