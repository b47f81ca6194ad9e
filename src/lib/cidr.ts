/** IP addresses and ranges: canonical forms and range checks. */
import { isIPv4, isIPv6 } from 'node:net'

/** A range; an address is a range of one. 4 or 16 network bytes with the host bits cleared. */
export interface Cidr {
  readonly bytes: Uint8Array
  readonly prefix: number
}

/**
 * `10.1.2.3/8` is `10.0.0.0/8`; `::ffff:10.0.0.1` is `10.0.0.1`. Null for anything else: zone ids, `/33`, `010.0.0.1`,
 * surrounding blanks.
 */
export function parseCidr(text: string): Cidr | null {
  const slash = text.indexOf('/')
  const address = slash < 0 ? text : text.slice(0, slash)
  const raw = addressBytes(address)
  if (!raw) return null
  const prefix = slash < 0 ? raw.length * 8 : prefixLength(text.slice(slash + 1), raw.length * 8)
  if (prefix === null) return null
  return unmapped({ bytes: masked(raw, prefix), prefix })
}

/** Whether `cidr` contains `address`. False for text that is not an address. An IPv6 range never contains an IPv4 address. */
export function contains(cidr: Cidr, address: string): boolean {
  return anyContains([cidr], address)
}

/** Whether one of `cidrs` contains `address`, which is parsed once. */
export function anyContains(cidrs: readonly Cidr[], address: string): boolean {
  const bytes = parseAddress(address)
  return bytes !== null && cidrs.some((cidr) => holds(cidr, bytes))
}

/** The canonical text of an address (RFC 5952, lower case, IPv4-mapped as IPv4), or null when it is not one. */
export function normaliseIp(text: string): string | null {
  if (isIPv4(text)) return text
  const bytes = parseAddress(text)
  return bytes && formatAddress(bytes)
}

/** The canonical text, without prefix for a single address. `parseCidr` reads it back. */
export function formatCidr(cidr: Cidr): string {
  const address = formatAddress(cidr.bytes)
  return cidr.prefix === cidr.bytes.length * 8 ? address : `${address}/${cidr.prefix}`
}

const MAPPED_PREFIX = 96

function parseAddress(text: string): Uint8Array | null {
  return text.includes('/') ? null : (parseCidr(text)?.bytes ?? null)
}

function addressBytes(text: string): Uint8Array | null {
  if (isIPv4(text)) return Uint8Array.from(text.split('.'), Number)
  // A zone id names a local interface and is meaningless in a rule for clients.
  if (text.includes('%') || !isIPv6(text)) return null
  const [head = '', tail] = text.split('::')
  const front = groupBytes(head)
  const back = tail === undefined ? [] : groupBytes(tail)
  const gap = new Array<number>(16 - front.length - back.length).fill(0)
  return Uint8Array.from([...front, ...gap, ...back])
}

function groupBytes(text: string): number[] {
  if (text === '') return []
  return text.split(':').flatMap((group) => {
    if (group.includes('.')) return group.split('.').map(Number)
    const value = Number.parseInt(group, 16)
    return [value >> 8, value & 0xff]
  })
}

function prefixLength(text: string, max: number): number | null {
  if (!/^(0|[1-9]\d{0,2})$/.test(text)) return null
  const prefix = Number(text)
  return prefix <= max ? prefix : null
}

function masked(bytes: Uint8Array, prefix: number): Uint8Array {
  return bytes.map((byte, i) => byte & maskByte(prefix - i * 8))
}

/** The mask of a byte whose first `bits` belong to the network. */
function maskByte(bits: number): number {
  if (bits >= 8) return 0xff
  return bits <= 0 ? 0 : (0xff << (8 - bits)) & 0xff
}

/** `::ffff:0:0/96` and below is IPv4 written by a dual-stack socket. */
function unmapped(cidr: Cidr): Cidr {
  const { bytes, prefix } = cidr
  const isMapped =
    bytes.length === 16 && prefix >= MAPPED_PREFIX && bytes.every((byte, i) => i >= 12 || byte === (i < 10 ? 0 : 0xff))
  return isMapped ? { bytes: bytes.slice(12), prefix: prefix - MAPPED_PREFIX } : cidr
}

function holds({ bytes: network, prefix }: Cidr, bytes: Uint8Array): boolean {
  return bytes.length === network.length && network.every((byte, i) => (bytes[i]! & maskByte(prefix - i * 8)) === byte)
}

function formatAddress(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.')
  const groups = Array.from({ length: 8 }, (_, i) => (bytes[2 * i]! << 8) | bytes[2 * i + 1]!)
  const written = groups.map((group) => group.toString(16)).join(':')
  return new URL(`http://[${written}]`).hostname.slice(1, -1)
}
