/** Which addresses are of the public internet. Source: IANA, special-purpose address registries for IPv4 and IPv6. */
import { BlockList, isIP } from 'node:net'

const specialPurpose = new BlockList()
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  // Carrier-grade NAT, and some clouds' metadata.
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  // Link-local: most clouds' metadata is at 169.254.169.254.
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  // Multicast, reserved and broadcast.
  ['224.0.0.0', 3],
] as const)
  specialPurpose.addSubnet(network, prefix, 'ipv4')
for (const [network, prefix] of [
  // Teredo, ORCHID and other protocols' own.
  ['2001::', 23],
  ['2001:db8::', 32],
  // 6to4: an address of IPv4, whichever, is inside.
  ['2002::', 16],
  ['3fff::', 20],
] as const)
  specialPurpose.addSubnet(network, prefix, 'ipv6')

/** All else of IPv6 is local, translated from IPv4 (mapped, NAT64), multicast, or nobody's. */
const globalUnicast = new BlockList()
globalUnicast.addSubnet('2000::', 3, 'ipv6')

/** @param address as a resolver gives it, without brackets; anything else is not public */
export function isPublicAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !specialPurpose.check(address, 'ipv4')
    case 6:
      // With a zone it is of a link.
      return (
        !address.includes('%') &&
        globalUnicast.check(address, 'ipv6') &&
        !specialPurpose.check(address, 'ipv6')
      )
    default:
      return false
  }
}
