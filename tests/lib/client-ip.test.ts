/** Forwarded headers count only from trusted peers, and ambiguous ones are ignored. */
import { describe, expect, test } from 'bun:test'
import { parseCidr } from '../../src/lib/cidr.ts'
import { clientIp, isLocalRequest, isLoopback } from '../../src/lib/client-ip.ts'

const PROXY = '10.0.0.1'
const trust = ['10.0.0.0/8', '127.0.0.1', '::1'].map((text) => parseCidr(text)!)

const resolve = (peer: string | null, headers: Record<string, string>, trusted: typeof trust | null = trust) =>
  clientIp({ peer, headers: new Headers(headers), trust: trusted })

describe('clientIp', () => {
  test('is the socket peer without trust, from a stranger, and without headers', () => {
    const lie = { 'x-forwarded-for': '1.1.1.1' }
    expect(resolve(PROXY, lie, null)).toEqual({ ip: PROXY, viaProxy: false })
    expect(resolve('203.0.113.9', lie)).toEqual({ ip: '203.0.113.9', viaProxy: false })
    expect(resolve('::ffff:10.0.0.1', {})).toEqual({ ip: PROXY, viaProxy: true })
    expect(resolve(null, lie)).toEqual({ ip: null, viaProxy: false })
  })

  test.each([
    ['203.0.113.9', '203.0.113.9'],
    ['6.6.6.6, 203.0.113.9, 10.0.0.2', '203.0.113.9'],
    ['not an address, 203.0.113.9', '203.0.113.9'],
    ['10.0.0.9, 10.0.0.2', '10.0.0.9'],
    ['203.0.113.9:5555', '203.0.113.9'],
    ['[2001:DB8::1]:5555', '2001:db8::1'],
    ['2001:DB8::1', '2001:db8::1'],
    ['203.0.113.9, unknown', null],
    ['203.0.113.9, , 10.0.0.2', null],
    ['203.0.113.9,', null],
    ['', null],
    ['fe80::1%eth0', null],
  ])('X-Forwarded-For: %p is %p', (header, ip) => {
    expect(resolve(PROXY, { 'x-forwarded-for': header })).toEqual({ ip, viaProxy: true })
  })

  test.each([
    ['for=203.0.113.9', '203.0.113.9'],
    ['For="203.0.113.9:80";proto=https;by=10.0.0.1', '203.0.113.9'],
    ['for=6.6.6.6, proto=http; for="[2001:db8::1]:443"', '2001:db8::1'],
    ['for=203.0.113.9, for=10.0.0.2', '203.0.113.9'],
    ['for="203.0.113.9, for=6.6.6.6', null],
    ['for=unknown', null],
    ['for=_hidden', null],
    ['proto=https', null],
    ['xfor=203.0.113.9', null],
    [',', null],
  ])('Forwarded: %p is %p', (header, ip) => {
    expect(resolve(PROXY, { forwarded: header })).toEqual({ ip, viaProxy: true })
  })

  test('repeated fields are one list in order', () => {
    const headers = new Headers()
    headers.append('x-forwarded-for', '6.6.6.6')
    headers.append('x-forwarded-for', '203.0.113.9')
    expect(clientIp({ peer: PROXY, headers, trust }).ip).toBe('203.0.113.9')
  })

  test('two headers that disagree give no address', () => {
    const headers = { 'x-forwarded-for': '203.0.113.9', forwarded: 'for=203.0.113.9' }
    expect(resolve(PROXY, headers).ip).toBe('203.0.113.9')
    expect(resolve(PROXY, { ...headers, forwarded: 'for=203.0.113.8' }).ip).toBeNull()
  })

  test('a long hostile header is parsed quickly', () => {
    const started = performance.now()
    expect(resolve(PROXY, { forwarded: `${'",'.repeat(200_000)}x` }).ip).toBeNull()
    expect(performance.now() - started).toBeLessThan(2000)
  })
})

test('loopback is 127/8 and ::1, mapped or not', () => {
  expect(['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1'].map(isLoopback)).toEqual([true, true, true, true])
  expect(['128.0.0.1', '::2', '0.0.0.0', 'localhost'].map(isLoopback)).toEqual([false, false, false, false])
})

describe('isLocalRequest', () => {
  const isLocal = (
    peer: string | null,
    host: string | null,
    headers: Record<string, string> = {},
    trusted: typeof trust | null = null,
  ) => isLocalRequest({ peer, host, headers: new Headers(headers), trust: trusted })

  test.each([null, '', 'localhost', 'LocalHost:2455', '127.0.0.1', '127.0.0.1:2455', '::1', '[::1]', '[::1]:2455'])(
    'Host %p is local',
    (host) => expect(isLocal('127.0.0.1', host)).toBe(true),
  )

  test.each(['evil.example', 'localhost.evil.example', 'localhost:80:80', 'localhost:x', '127.0.0.2', '0.0.0.0', ' '])(
    'Host %p is not local',
    (host) => expect(isLocal('127.0.0.1', host)).toBe(false),
  )

  test('without trust: a loopback socket and no forwarded-client header', () => {
    expect(isLocal('::ffff:127.0.0.1', 'localhost')).toBe(true)
    expect(isLocal('192.168.1.5', 'localhost')).toBe(false)
    expect(isLocal(null, 'localhost')).toBe(false)
    for (const name of ['X-Forwarded-For', 'Forwarded', 'X-Real-IP', 'True-Client-IP', 'CF-Connecting-IP']) {
      expect(isLocal('127.0.0.1', 'localhost', { [name]: '127.0.0.1' })).toBe(false)
    }
  })

  test.each([
    'X-Forwarded-Host',
    'X-Forwarded-Proto',
    'X-Forwarded-Anything-New',
    'Via',
    'X-Client-IP',
    'CF-Ray',
    'CF-Visitor',
    'X-Original-Forwarded-For',
  ])('%s reveals a proxy on this machine', (name) => {
    expect(isLocal('127.0.0.1', 'localhost', { [name]: 'anything' })).toBe(false)
    expect(isLocal('127.0.0.1', 'localhost', { [name]: 'anything' }, trust)).toBe(false)
    const named = { [name]: '127.0.0.1', 'x-forwarded-for': '127.0.0.1' }
    expect(isLocal('127.0.0.1', 'localhost', named, trust)).toBe(true)
  })

  test('the headers of an ordinary client reveal none', () => {
    const headers = { forward: 'x', 'x-forward': 'x', cf: 'x', 'x-codex-window-id': '1', viaduct: 'x', version: '1' }
    expect(isLocal('127.0.0.1', 'localhost', headers)).toBe(true)
  })

  test('with trust: a trusted peer and headers that agree on one loopback address', () => {
    const local = (peer: string, headers: Record<string, string> = {}) => isLocal(peer, 'localhost', headers, trust)
    expect(local('127.0.0.1')).toBe(true)
    expect(local(PROXY)).toBe(false)
    expect(local('192.168.1.5', { 'x-forwarded-for': '127.0.0.1' })).toBe(false)
    expect(local(PROXY, { 'x-forwarded-for': '127.0.0.1', 'x-real-ip': '127.0.0.1' })).toBe(true)
    expect(local(PROXY, { 'x-forwarded-for': '127.0.0.1', 'x-real-ip': '127.0.0.2' })).toBe(false)
    for (const name of ['x-real-ip', 'x-client-ip', 'true-client-ip', 'cf-connecting-ip'])
      expect([name, local(PROXY, { [name]: '127.0.0.1' }), local(PROXY, { [name]: '192.0.2.1' })]).toEqual([
        name,
        true,
        false,
      ])
    expect(local(PROXY, { 'x-forwarded-for': '127.0.0.1', forwarded: 'for=203.0.113.9' })).toBe(false)
    expect(local(PROXY, { 'x-forwarded-for': '127.0.0.1, 203.0.113.9' })).toBe(false)
    expect(local(PROXY, { 'cf-connecting-ip': 'nonsense' })).toBe(false)
    expect(isLocal(PROXY, 'evil.example', { 'x-forwarded-for': '127.0.0.1' }, trust)).toBe(false)
  })
})
