/** Where the list of a fleet's replicas comes from. */
import { lookup } from 'node:dns/promises'
import { checkInteger, checkKeys, checkObject, describeValue } from '../../options/check.ts'
import type { ResolvedUpstreamOptions } from '../upstream/options.ts'

/** The replicas of a fleet: their base URLs, a DNS name, or a function that returns their URLs. */
export type ReplicaSource = readonly (string | URL)[] | ReplicaDns | ListReplicas

/** Returns the base URLs of all replicas. If it throws, the last list stays. */
export type ListReplicas = () => readonly (string | URL)[] | Promise<readonly (string | URL)[]>

/** A DNS name with an address of each replica, such as that of a headless service in Kubernetes. */
export interface ReplicaDns {
  /** Name that resolves to an address of each replica. */
  readonly dns: string
  /** Port of all replicas, from 1 to 65,535. */
  readonly port: number
  /** Version of the IP addresses to use. @default the IPv4 addresses if there are any, else those of IPv6 */
  readonly family?: 4 | 6
}

export interface Membership {
  /** Returns the options of all replicas. Rejects if they cannot be found now. */
  read(): Promise<readonly ResolvedUpstreamOptions[]>
  /** Time between two reads, in ms. Undefined for a list that never changes. */
  readonly refreshMs: number | undefined
}

type ToUpstream = (url: string | URL) => ResolvedUpstreamOptions

/** Throws a `TypeError` for an invalid list. */
export function toMembership(replicas: ReplicaSource, refreshMs: number, toUpstream: ToUpstream): Membership {
  if (typeof replicas === 'function')
    return { refreshMs, read: async () => toList(await replicas(), toUpstream) }
  if (Array.isArray(replicas)) {
    const list = toList(replicas, toUpstream)
    if (list.length === 0) throw new TypeError('Expected `replicas` to have at least one URL')
    return { refreshMs: undefined, read: async () => list }
  }
  checkObject('replicas', replicas)
  const dns = checkDns(replicas as ReplicaDns)
  return { refreshMs, read: async () => toList(await resolve(dns), toUpstream) }
}

function toList(urls: unknown, toUpstream: ToUpstream): readonly ResolvedUpstreamOptions[] {
  if (!Array.isArray(urls))
    throw new TypeError(`Expected \`replicas\` to be a list of URLs, got ${describeValue(urls)}`)
  const list = urls.map(toUpstream)
  return [...new Map(list.map((one) => [one.baseUrl.href, one])).values()]
}

function checkDns(replicas: ReplicaDns): ReplicaDns {
  checkKeys('replicas.', replicas, ['dns', 'port', 'family'])
  const { dns, port, family } = replicas
  if (typeof dns !== 'string' || !/^[\w.-]+$/.test(dns))
    throw new TypeError(`Expected \`replicas.dns\` to be a name, got ${describeValue(dns)}`)
  if (port === undefined) throw new TypeError('Expected `replicas.port` to be set')
  checkInteger('replicas.port', port, 1, 65_535)
  if (family !== undefined && family !== 4 && family !== 6)
    throw new TypeError(`Expected \`replicas.family\` to be 4 or 6, got ${describeValue(family)}`)
  return replicas
}

/** By the resolver of the system, which knows the file of hosts and keeps names up to their TTL. */
async function resolve({ dns, port, family }: ReplicaDns): Promise<readonly string[]> {
  const addresses = await lookup(dns, { all: true, family: family ?? 0 })
  // A replica with addresses of both families is one replica.
  const chosen = family ?? (addresses.some((one) => one.family === 4) ? 4 : 6)
  return addresses
    .filter((one) => one.family === chosen)
    .map(({ address }) => `http://${chosen === 6 ? `[${address}]` : address}:${port}`)
}
