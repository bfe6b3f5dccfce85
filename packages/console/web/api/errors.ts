/** Errors of the admin API and of the three public APIs. */

/** An error response, or a request that reached no server (`status` 0). */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: number
  readonly code: string | undefined
  /** Path of the rejected field, such as `limits.tokensPerMinute`. */
  readonly param: string | undefined

  constructor(message: string, details: { status: number; code?: string; param?: string }) {
    super(message)
    this.status = details.status
    this.code = details.code
    this.param = details.param
  }

  /** Whether the route works only in an app with a database. */
  get needsDatabase(): boolean {
    return this.status === 400 && this.message.startsWith('This route needs a database')
  }
}

/** Converts an error body. The admin, OpenAI and Anthropic APIs send an object in `error`, the Ollama API a string. */
export function toApiError(status: number, body: unknown): ApiError {
  const error = isRecord(body) ? body.error : undefined
  if (typeof error === 'string') return new ApiError(error, { status })
  if (!isRecord(error)) return new ApiError(fallbackMessage(status), { status })
  const { message, code, param } = error
  return new ApiError(typeof message === 'string' ? message : fallbackMessage(status), {
    status,
    ...(typeof code === 'string' && { code }),
    ...(typeof param === 'string' && { param }),
  })
}

/** Throws the error of a response that failed. */
export async function checkResponse(response: Response): Promise<Response> {
  if (response.ok) return response
  throw toApiError(response.status, await response.json().catch(() => undefined))
}

/** Names a failed request. `fetch` throws a `TypeError` without a cause that says more. */
export function toNetworkError(error: unknown): unknown {
  return error instanceof TypeError
    ? new ApiError('The server cannot be reached. Check that the app is running, then try again.', {
        status: 0,
      })
    : error
}

const fallbackMessage = (status: number): string =>
  status === 401 ? 'Your session has ended. Log in again.' : `The server answered with status ${status}.`

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null
