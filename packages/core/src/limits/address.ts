import { isIP } from 'node:net'

/**
 * Returns the rate limit key of a client address. The key does not depend on the port. IPv6 addresses of one
 * subnet share a key, because a customer usually has a whole subnet of 64 bits. An IPv6 address that contains
 * an IPv4 address (mapped, translated) has the key of that address.
 *
 * @param ipv6Subnet number of leading bits of an IPv6 address in the key
 */
export function addressKey(address: string | undefined, ipv6Subnet = 64): string {
  if (!address?.includes(':')) return `ip:${address || 'unknown'}`
  const bare = stripPort(address)
  const version = isIP(bare)
  if (version === 4) return `ip:${bare}`
  if (version !== 6) return `ip:${address}`
  const groups = groupsOf(bare)
  const [high = 0, low = 0] = groups.slice(-2)
  if (ipv4Prefixes.includes(groups.slice(0, 6).join()))
    return `ip:${[high >> 8, high & 255, low >> 8, low & 255].join('.')}`
  const network = groups.slice(0, Math.ceil(ipv6Subnet / 16)).map((group, index) => {
    const hostBits = Math.max(0, 16 * (index + 1) - ipv6Subnet)
    return ((group >> hostBits) << hostBits).toString(16)
  })
  return `ip:${network.join(':')}${network.length < 8 ? '::' : ''}/${ipv6Subnet}`
}

/**
 * Removes the port, because some proxies write `192.0.2.1:5001` and `[2001:db8::1]:443`. Also removes the
 * zone of a link-local address (`%eth0`), which has no meaning on other machines.
 */
const stripPort = (address: string): string =>
  (/^\[([^\]]*)\](?::\d+)?$/.exec(address)?.[1] ?? address.replace(/^([\d.]+):\d+$/, '$1')).replace(
    /%.*$/,
    '',
  )

/**
 * The first 96 bits of IPv6 addresses that end with an IPv4 address: mapped (RFC 4291), translated (RFC
 * 2765), and NAT64 (RFC 6052).
 */
const ipv4Prefixes = [
  [0, 0, 0, 0, 0, 0xffff],
  [0, 0, 0, 0, 0xffff, 0],
  [0x64, 0xff9b, 0, 0, 0, 0],
].map((groups) => groups.join())

/** Parses a valid IPv6 address into its eight groups of 16 bits. */
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
