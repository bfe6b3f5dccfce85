/** `modelmount serve --console`. */
import { LoginLinks } from '@modelmount/console'
import { consoleRouter } from '@modelmount/console/express'
import type { Llm } from '@modelmount/core'
import type { Router } from 'express'

export interface ServedConsole {
  /** To mount under `/console`. */
  readonly router: Router
  /** @param url of the server */
  describeLogin(url: string): string
}

/**
 * @param isLocal whether only this machine reaches the server. Its operator then logs in with a link, and everyone else
 *   with an API key
 */
export function openConsole(llm: Llm, isLocal: boolean): ServedConsole {
  const links = new LoginLinks()
  return {
    router: consoleRouter(llm, isLocal ? { loginLinks: links } : {}),
    describeLogin: (url) =>
      isLocal
        ? `Console: ${url}/console/${links.create()} (valid once, for 10 minutes)`
        : `Console: ${url}/console/ (log in with a key that has the scope admin)`,
  }
}
