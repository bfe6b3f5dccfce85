/** Starts Node's HTTP server on the loopback address. */
import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Listening {
  /** Has no trailing slash. */
  readonly url: string
  readonly server: Server
  /** Also closes open connections. */
  close(): Promise<void>
}

/** @param wanted the port, 0 for a free one */
export async function listen(
  handler: RequestListener,
  options: ServerOptions = {},
  wanted = 0,
): Promise<Listening> {
  const server = createServer(options, handler)
  await new Promise<void>((resolve) => server.listen(wanted, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    server,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
