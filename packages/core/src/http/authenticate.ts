/** Calls the option `authenticate` of an adapter, with a deadline. */
import type { Caller } from '../accounts/auth/caller.ts'
import { LlmError } from '../errors.ts'
import { resolveTimeout } from '../options/timeout.ts'
import type { Duration } from '../units.ts'

/** `null` and `undefined` stand for no caller. */
type FoundCaller = Caller | null | undefined

/**
 * How the host app names the caller of a request.
 *
 * @typeParam Source request or context that the framework passes to handlers, e.g. Express's `Request`
 */
export interface AuthenticateOptions<Source, Context = AuthenticateContext> {
  /**
   * Returns the caller of a request. The host app must have authenticated this caller before. Without a
   * caller, the response is 401. An `LlmError` that it throws is the response. Required with
   * `createLlm({ auth: 'host' })`, otherwise not allowed.
   */
  readonly authenticate?:
    | ((source: Source, context: Context) => FoundCaller | Promise<FoundCaller>)
    | undefined
  /**
   * How long `authenticate` may take: milliseconds, or `'3s'`, from 1 ms to 24 days. The response is then 503.
   *
   * @default '10s'
   */
  readonly authenticateTimeout?: Duration | undefined
}

/** The second argument of `authenticate`. */
export interface AuthenticateContext {
  /** Aborts when the time is over, and when the client disconnects. */
  readonly signal: AbortSignal
}

/**
 * Returns the caller of a request, or undefined without one. Rejects with an `LlmError`, or with an
 * `AuthenticateError` if the app's function fails otherwise.
 *
 * @param disconnected aborts when the client disconnects
 */
export type Authenticator<Source> = (source: Source, disconnected: AbortSignal) => Promise<Caller | undefined>

/**
 * Creates a function that asks the host app for the caller of a request. It rejects with the errors of
 * `authenticate`, and with an `LlmError` after the deadline. Throws a `TypeError` for an invalid time.
 */
export function createAuthenticator<Source>(options: AuthenticateOptions<Source>): Authenticator<Source> {
  const timeoutMs = resolveTimeout('authenticateTimeout', options.authenticateTimeout ?? '10s')

  return async (source, disconnected) => {
    if (disconnected.aborted) throw clientDisconnected()
    const controller = new AbortController()
    let onDisconnect = (): void => {}
    let timer: NodeJS.Timeout | undefined
    try {
      return await new Promise((resolve, reject) => {
        const end = (reason: LlmError): void => {
          reject(reason)
          controller.abort(reason)
        }
        onDisconnect = () => end(clientDisconnected())
        disconnected.addEventListener('abort', onDisconnect)
        timer = setTimeout(() => end(authenticationTimedOut(timeoutMs)), timeoutMs)
        const find = async () =>
          (await options.authenticate?.(source, { signal: controller.signal })) ?? undefined
        find().then(resolve, reject)
      })
    } finally {
      clearTimeout(timer)
      disconnected.removeEventListener('abort', onDisconnect)
    }
  }
}

const authenticationTimedOut = (timeoutMs: number): LlmError =>
  new LlmError(
    'unavailable',
    `The app did not authenticate this request within ${timeoutMs / 1_000} s. Try again in 5 s.`,
    { retryAfterMs: 5_000 },
  )

/** No client receives this error. */
const clientDisconnected = (): LlmError => new LlmError('timeout', 'The client has disconnected.')
