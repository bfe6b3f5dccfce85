/** Tokens for links that log in once, without an API key. */
import { randomBytes } from 'node:crypto'

/** How long a token is valid, in ms. */
const lifetimeMs = 10 * 60_000

/** Tokens that are valid at the same time. The oldest one beyond this number is forgotten. */
const maxTokens = 10

/**
 * One-time login tokens of this process. A browser that sends one gets a session with all scopes, so give a link to
 * the operator of the app only.
 */
export class LoginLinks {
  /** When each token expires, on the clock of `performance.now()`. */
  readonly #tokens = new Map<string, number>()

  /**
   * Returns the fragment of a link to the console, such as `http://localhost:3000/console/${links.create()}`. It is
   * valid once, for ten minutes. Browsers do not send fragments, so no log of a server or proxy contains the token.
   */
  create(): string {
    const token = randomBytes(32).toString('base64url')
    this.#tokens.set(token, performance.now() + lifetimeMs)
    const [oldest = ''] = this.#tokens.keys()
    if (this.#tokens.size > maxTokens) this.#tokens.delete(oldest)
    return `#/login?token=${token}`
  }

  /** Uses a token up. Returns whether it was valid. */
  redeem(token: string): boolean {
    const expiresAt = this.#tokens.get(token)
    this.#tokens.delete(token)
    return expiresAt !== undefined && performance.now() < expiresAt
  }
}
