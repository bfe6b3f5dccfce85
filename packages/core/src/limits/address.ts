import { isIP } from 'node:net'

/**
 * The subject of a call by where it comes from: a port is no part of it. Of IPv6 a customer has 64 bits to choose addresses from, so they
 * are one; IPv4 that is written as IPv6, or was translated to it, is IPv4.
 */
export function addressSubject(address: string | undefined): string {
  if (!address?.includes(':')) return `ip:${address || 'unknown'}`
  const bare = stripPort(address)
  const version = isIP(bare)
  if (version === 4) return `ip:${bare}`
  if (version !== 6) return `ip:${address}`
  const groups = groupsOf(bare)
  const [high = 0, low = 0] = groups.slice(-2)
  if (ipv4Prefixes.includes(groups.slice(0, 6).join()))
    return `ip:${[high >> 8, high & 255, low >> 8, low & 255].join('.')}`
  return `ip:${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(':')}::/64`
}

/** Some proxies write `192.0.2.1:5001` and `[2001:db8::1]:443`. The zone of a link is known to this machine alone. */
const stripPort = (address: string): string =>
  (/^\[([^\]]*)\](?::\d+)?$/.exec(address)?.[1] ?? address.replace(/^([\d.]+):\d+$/, '$1')).replace(
    /%.*$/,
    '',
  )

/** What stands before the 32 bits of IPv4: mapped and translated (RFC 4291, RFC 2765), and NAT64 (RFC 6052). */
const ipv4Prefixes = [
  [0, 0, 0, 0, 0, 0xffff],
  [0, 0, 0, 0, 0xffff, 0],
  [0x64, 0xff9b, 0, 0, 0, 0],
].map((groups) => groups.join())

/** The eight numbers of a valid address of IPv6. */
function groupsOf(address: string): readonly number[] {
  const hexadecimal = address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_dotted, ...bytes) => {
    const [a, b, c, d] = bytes.slice(0, 4).map(Number) as [number, number, number, number]
    return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`
  })
  const [head, tail] = hexadecimal.split('::').map((half) => (half ? half.split(':') : [])) as [
    string[],
    string[]?,
  ]
  const zeros = tail ? Array<string>(8 - head.length - tail.length).fill('0') : []
  return [...head, ...zeros, ...(tail ?? [])].map((group) => Number.parseInt(group, 16))
}
