import { isIP } from 'node:net'

/**
 * The subject of a call by where it comes from. Of IPv6 a customer has 64 bits to choose addresses from, so they are one; IPv4 that is
 * written as IPv6 is IPv4.
 */
export function addressSubject(address: string | undefined): string {
  if (!address?.includes(':')) return `ip:${address || 'unknown'}`
  const [bare = ''] = address.split('%')
  if (isIP(bare) !== 6) return `ip:${address}`
  const groups = groupsOf(bare)
  const [high = 0, low = 0] = groups.slice(-2)
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff
  if (isMapped) return `ip:${[high >> 8, high & 255, low >> 8, low & 255].join('.')}`
  return `ip:${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(':')}::/64`
}

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
