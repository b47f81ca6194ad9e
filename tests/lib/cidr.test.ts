/** Addresses and ranges have one canonical form, and membership is exact at the edges. */
import { describe, expect, test } from 'bun:test'
import { BlockList } from 'node:net'
import fc from 'fast-check'
import { anyContains, contains, formatCidr, normaliseIp, parseCidr } from '../../src/lib/cidr.ts'

const canonical = (text: string) => {
  const cidr = parseCidr(text)
  return cidr && formatCidr(cidr)
}

test.each([
  ['10.1.2.3', '10.1.2.3'],
  ['10.1.2.3/32', '10.1.2.3'],
  ['10.1.2.3/8', '10.0.0.0/8'],
  ['10.255.255.255/9', '10.128.0.0/9'],
  ['1.2.3.4/0', '0.0.0.0/0'],
  ['2001:DB8::1/128', '2001:db8::1'],
  ['2001:db8:ffff::/33', '2001:db8:8000::/33'],
  ['::/0', '::/0'],
  ['::ffff:10.1.2.3', '10.1.2.3'],
  ['::FFFF:a01:203', '10.1.2.3'],
  ['::ffff:10.1.2.3/104', '10.0.0.0/8'],
  ['::ffff:10.1.2.3/64', '::/64'],
])('%s is %s', (text, expected) => {
  expect(canonical(text)).toBe(expected)
  expect(canonical(expected)).toBe(expected)
})

test.each([
  ['2001:0DB8:0000:0000:0000:0000:0000:0001', '2001:db8::1'],
  ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
  ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1'],
  ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
  ['1:0:0:0:0:0:0:0', '1::'],
  ['0:0:0:0:0:0:0:0', '::'],
  ['64:ff9b::192.0.2.33', '64:ff9b::c000:221'],
  ['::10.0.0.1', '::a00:1'],
])('RFC 5952 writes %s as %s', (text, expected) => {
  expect(normaliseIp(text)).toBe(expected)
})

test.each([
  '',
  ' 10.0.0.1',
  '10.0.0.1 ',
  '10.0.0',
  '010.0.0.1',
  '256.1.1.1',
  '10.0.0.1/33',
  '10.0.0.1/-1',
  '10.0.0.1/08',
  '10.0.0.1/',
  '10.0.0.1/8/8',
  '::1/129',
  'fe80::1%eth0',
  'fe80::1%eth0/64',
  ':::1',
  '1::2::3',
  '[::1]',
  'localhost',
])('%p is not a range', (text) => {
  expect(parseCidr(text)).toBeNull()
  expect(normaliseIp(text)).toBeNull()
})

test('an address with a prefix is not an address', () => {
  expect(normaliseIp('10.0.0.1/32')).toBeNull()
})

describe('contains', () => {
  const within = (range: string, address: string) => contains(parseCidr(range)!, address)

  test('is exact at the edges of a range', () => {
    expect(within('192.168.4.0/22', '192.168.4.0')).toBe(true)
    expect(within('192.168.4.0/22', '192.168.7.255')).toBe(true)
    expect(within('192.168.4.0/22', '192.168.3.255')).toBe(false)
    expect(within('192.168.4.0/22', '192.168.8.0')).toBe(false)
  })

  test('reads mapped addresses as IPv4, compatible ones as IPv6', () => {
    expect(within('10.0.0.0/8', '::10.0.0.1')).toBe(false)
    expect(within('10.0.0.0/8', '::ffff:10.9.9.9')).toBe(true)
    expect(within('::/0', '10.0.0.1')).toBe(false)
    expect(within('0.0.0.0/0', '::1')).toBe(false)
    expect(within('0.0.0.0/0', 'no address')).toBe(false)
  })

  test('anyContains checks several ranges', () => {
    const ranges = [parseCidr('10.0.0.0/8')!, parseCidr('::1')!]
    expect([anyContains(ranges, '::1'), anyContains(ranges, '11.0.0.1'), anyContains([], '::1')]).toEqual([
      true,
      false,
      false,
    ])
  })

  test('agrees with the runtime about IPv4 and IPv6', () => {
    const cases = fc.oneof(
      fc.record({ family: fc.constant('ipv4' as const), net: fc.ipV4(), ip: fc.ipV4(), prefix: fc.nat(32) }),
      fc.record({ family: fc.constant('ipv6' as const), net: fc.ipV6(), ip: fc.ipV6(), prefix: fc.nat(128) }),
    )
    fc.assert(
      fc.property(cases, ({ family, net, ip, prefix }) => {
        fc.pre(normaliseIp(net)?.includes('.') === (family === 'ipv4'))
        fc.pre(normaliseIp(ip)?.includes('.') === (family === 'ipv4'))
        const list = new BlockList()
        list.addSubnet(net, prefix, family)
        expect(within(`${net}/${prefix}`, ip)).toBe(list.check(ip, family))
        expect(within(`${net}/${prefix}`, net)).toBe(true)
      }),
      { seed: 1, numRuns: 500 },
    )
  })
})
