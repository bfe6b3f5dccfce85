/** An HTTP proxy on the loopback address: tunnels by CONNECT, and requests with absolute URLs. It resolves names itself. */
import { type Server, request as sendRequest } from 'node:http'
import { connect, type Socket } from 'node:net'
import { pipeline } from 'node:stream'
import { listen } from './listen.ts'

export interface ConnectProxy {
  readonly url: string
  /** `CONNECT registry.example:443`, `GET http://registry.example/v2/` and so on. */
  readonly requests: readonly string[]
  /** Values of the header `proxy-authorization`. */
  readonly credentials: readonly (string | undefined)[]
  close(): Promise<void>
}

/** `hang`: accepts connections and requests, but never answers. A status rejects each request. */
export type ProxyBehaviour = 'forward' | 'hang' | 403 | 407

/** @param ports maps the `host:port` that clients name to a port of the loopback address */
export async function connectProxy(
  ports: Readonly<Record<string, number>>,
  behaviour: ProxyBehaviour = 'forward',
): Promise<ConnectProxy> {
  const requests: string[] = []
  const credentials: (string | undefined)[] = []
  const sockets = new Set<Socket>()
  const { url, server, close } = await listen((request, response) => {
    requests.push(`${request.method} ${request.url}`)
    credentials.push(request.headers['proxy-authorization'])
    if (behaviour === 'hang') return
    if (behaviour !== 'forward') return void response.writeHead(behaviour).end()
    const target = new URL(request.url ?? '')
    const { method, headers } = request
    const port = ports[`${target.hostname}:${target.port || 80}`]
    const forwarded = sendRequest(
      { port, method, headers, path: target.pathname + target.search },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        pipeline(answer, response, () => {})
      },
    )
    forwarded.on('error', () => response.destroy())
    pipeline(request, forwarded, () => {})
  })
  server.on('connection', (socket: Socket) => sockets.add(socket))
  onConnect(server, (target, authorization, socket) => {
    requests.push(`CONNECT ${target}`)
    credentials.push(authorization)
    const port = ports[target]
    if (behaviour === 'hang') return
    if (behaviour !== 'forward' || port === undefined)
      return void socket.end(`HTTP/1.1 ${behaviour === 'forward' ? 502 : behaviour} Refused\r\n\r\n`)
    const upstream = connect(port, '127.0.0.1', () => socket.write('HTTP/1.1 200 Connected\r\n\r\n'))
    sockets.add(upstream)
    pipeline(socket, upstream, socket, () => {})
  })
  return {
    url,
    requests,
    credentials,
    close: () => {
      for (const socket of sockets) socket.destroy()
      return close()
    },
  }
}

const onConnect = (
  server: Server,
  handle: (target: string, authorization: string | undefined, socket: Socket) => void,
): void =>
  void server.on('connect', (request, socket) => {
    socket.on('error', () => {})
    handle(request.url ?? '', request.headers['proxy-authorization'], socket as Socket)
  })
