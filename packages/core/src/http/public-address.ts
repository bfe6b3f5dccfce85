/**
 * Tells public internet addresses from special-purpose addresses. Source: IANA, special-purpose address
 * registries for IPv4 and IPv6.
 */
import { BlockList, isIP } from 'node:net'

const specialPurpose = new BlockList()
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  // Carrier-grade NAT, and the metadata services of some clouds.
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  // Link-local. The metadata service of most clouds is at 169.254.169.254.
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
  // Teredo, ORCHID and other protocol assignments.
  ['2001::', 23],
  ['2001:db8::', 32],
  // A 6to4 address contains an arbitrary IPv4 address.
  ['2002::', 16],
  ['3fff::', 20],
] as const)
  specialPurpose.addSubnet(network, prefix, 'ipv6')

/**
 * The range of public IPv6 addresses. All others are local, translated from IPv4 (mapped, NAT64), multicast
 * or unassigned.
 */
const globalUnicast = new BlockList()
globalUnicast.addSubnet('2000::', 3, 'ipv6')

/** Also returns false for text that is no IP address. @param address an IP address without brackets */
export function isPublicAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !specialPurpose.check(address, 'ipv4')
    case 6:
      // An address with a zone is link-local.
      return (
        !address.includes('%') &&
        globalUnicast.check(address, 'ipv6') &&
        !specialPurpose.check(address, 'ipv6')
      )
    default:
      return false
  }
}
