/** The routes in the process of a command, which it calls when no server runs. */
import { createLlm, type Llm, routesFor } from '@modelmount/core'
import { toFetchHandler } from '@modelmount/core/http'
import { logToStderr } from './output.ts'

export interface OwnRoutes {
  readonly handle: (request: Request) => Promise<Response>
  readonly llm: Llm
}

/** @param registry `host:port` of the registry in the model name of the command, which only this command may use */
export async function openOwnRoutes(registry: string | undefined): Promise<OwnRoutes> {
  const llm = await createLlm({
    scopes: ['inference', 'models'],
    ...(registry && { store: { registries: [registry], privateRegistries: [registry] } }),
    logger: { warn: logToStderr, error: logHiddenError },
  })
  return { llm, handle: toFetchHandler(routesFor(['ollama']), llm, { remoteAddress: () => '127.0.0.1' }) }
}

/** Logs an error. Upstream errors are left out, because the command prints their text itself. */
function logHiddenError(details: { readonly err?: { readonly code?: unknown } }, message: string): void {
  if (details.err?.code !== 'upstream') logToStderr(details, message)
}
