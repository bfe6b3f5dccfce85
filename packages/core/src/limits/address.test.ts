import { expect, test } from 'vitest'
import { addressSubject } from './address.ts'

test.each([
  ['192.0.2.1', 'ip:192.0.2.1'],
  ['::ffff:192.0.2.1', 'ip:192.0.2.1'],
  ['::FFFF:c000:201', 'ip:192.0.2.1'],
  ['0:0:0:0:0:ffff:192.0.2.1', 'ip:192.0.2.1'],
  ['2001:db8:1:2:3:4:5:6', 'ip:2001:db8:1:2::/64'],
  ['2001:0DB8:0001:0002::9', 'ip:2001:db8:1:2::/64'],
  ['2001:db8::1', 'ip:2001:db8:0:0::/64'],
  ['::1', 'ip:0:0:0:0::/64'],
  ['64:ff9b::192.0.2.1', 'ip:64:ff9b:0:0::/64'],
  ['fe80::1%eth0', 'ip:fe80:0:0:0::/64'],
  ['unix:', 'ip:unix:'],
  ['', 'ip:unknown'],
  [undefined, 'ip:unknown'],
])('%s is %s', (address, subject) => {
  expect(addressSubject(address)).toBe(subject)
})
