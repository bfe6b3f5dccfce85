/** A TCP proxy that can simulate a lost network: connections stay open, but no data passes. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface SilentProxy {
  readonly url: string
  /** Drops all data of existing and new connections. */
  silence(): void
  /** Forwards data again, and closes all open connections, because they may have lost data. */
  resume(): void
  close(): Promise<void>
}

/** @param url address of the server, with its port */
export async function silentProxy(url: string): Promise<SilentProxy> {
  const { hostname, port } = new URL(url)
  const sockets = new Set<Socket>()
  let isSilent = false
  const server = createServer((from) => {
    const to = connect(Number(port), hostname)
    for (const [one, other] of [
      [from, to],
      [to, from],
    ] as const) {
      sockets.add(one)
      one.on('data', (data) => void (isSilent || other.write(data)))
      one.on('error', () => {})
      one.on('close', () => {
        sockets.delete(one)
        other.destroy()
      })
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const own = new URL(url)
  own.port = `${(server.address() as AddressInfo).port}`
  return {
    url: own.href,
    silence: () => {
      isSilent = true
    },
    resume: () => {
      isSilent = false
      // Neither side would send lost data again.
      for (const socket of sockets) socket.destroy()
    },
    close: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
