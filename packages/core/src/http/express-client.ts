/** Reads what Express knows about the client of a request, for the adapters of Express and Nest. */
import type { IncomingMessage } from 'node:http'
import type { NodeRequestOptions } from './node.ts'

interface ExpressRequest extends IncomingMessage {
  readonly ip?: string | undefined
  readonly protocol?: string
  /** Absent if the router is called without an app. */
  readonly app?: { get(setting: string): unknown }
}

type TrustsProxy = (address: string | undefined, distance: number) => boolean

/** Headers of proxies count only as far as the app's setting `trust proxy` allows. */
export function readExpressClient(
  req: ExpressRequest,
): Pick<NodeRequestOptions, 'clientAddress' | 'host' | 'protocol'> {
  // Express 4 has no property for the host with its port. It stores the setting under this name, like Express 5.
  const trustsProxy = req.app?.get('trust proxy fn') as TrustsProxy | undefined
  const isTrusted = trustsProxy?.(req.socket.remoteAddress, 0)
  const forwarded = isTrusted ? req.headers['x-forwarded-host'] : undefined
  return {
    clientAddress: req.ip,
    host: forwarded?.toString().split(',', 1)[0]?.trim(),
    protocol: req.protocol,
  }
}
