/**
 * Which addresses users may configure for model sources and alert channels. Addresses that no server can have are
 * always rejected. So are link-local addresses and cloud metadata services, which return credentials of the machine.
 * Private networks are allowed for sources; for alerts, it depends on the channel.
 */
import { anyContains, type Cidr, formatCidr, parseCidr } from '../lib/cidr.ts'

const ranges = (...texts: string[]): readonly Cidr[] => texts.flatMap((text) => parseCidr(text) ?? [])

/** AWS, Google Cloud, Azure, Alibaba, Oracle, Scaleway and Linode, beside link-local. */
const METADATA = ranges(
  '169.254.0.0/16',
  'fe80::/10',
  '100.100.100.200',
  '192.0.0.192',
  '168.63.129.16',
  'fd00:ec2::/32',
  'fd20:ce::254',
  'fd00:c1::a9fe:a9fe',
  'fd00:42::42',
  'fd00:a9fe:a9fe::/48',
)
/** Multicast, broadcast and reserved. */
const NOT_A_HOST = ranges('224.0.0.0/3', 'ff00::/8')

/** This machine and private networks: RFC 1918, RFC 6598, RFC 4193, and ranges that are not routed publicly. */
const PRIVATE = ranges(
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '::/127',
  'fc00::/7',
  'fec0::/10',
)

/** These and names below them; a proxy may resolve them where we cannot. */
const METADATA_NAMES: readonly string[] = [
  'metadata',
  'metadata.google.internal',
  'metadata.goog',
  'instance-data',
  'instance-data.ec2.internal',
  'metadata.ec2.internal',
  'metadata.azure.internal',
  'metadata.azure.com',
  'metadata.tencentyun.com',
  'metadata.platformequinix.com',
  'metadata.packet.net',
  'metadata.oraclecloud.com',
  'rancher-metadata',
]

const METADATA_PROBLEM = 'This is a link-local or cloud metadata address, which is not allowed.'

/** Why `address` is always rejected, or null if it is not. `address` comes from a URL or a name lookup. */
export const problemOfAddress = (address: string): string | null => {
  const forms = getForms(address)
  if (forms.length === 0) return 'This is not an IP address.'
  if (forms.some((form) => anyContains(METADATA, form))) return METADATA_PROBLEM
  return forms.some((form) => anyContains(NOT_A_HOST, form)) ? 'This address belongs to no single server.' : null
}

/** Why this host name (in lower case, as a URL returns it) is always rejected. Null if it depends on its addresses. */
export const problemOfName = (hostname: string): string | null => {
  const name = hostname.replace(/\.+$/, '')
  const isRefused = METADATA_NAMES.some((refused) => name === refused || name.endsWith(`.${refused}`))
  return isRefused ? METADATA_PROBLEM : null
}

/** Whether `address` is on this machine or in a private network. */
export const isPrivateAddress = (address: string): boolean =>
  getForms(address).some((form) => anyContains(PRIVATE, form))

/** `address` and the IPv4 addresses inside it, as canonical texts; empty when it is none. */
export const getForms = (address: string): string[] => {
  const found = parseCidr(address.replace(/^\[|\]$/g, '').replace(/%.*$/, ''))
  return found ? [found.bytes, ...embedded(found.bytes)].map(getText) : []
}

/**
 * Stored without a trailing slash. Null for what is not an `http:` or `https:` URL of a host, and for user names,
 * queries and fragments, which would end up in addresses and logs.
 */
export const getBaseUrl = (text: string): string | null => {
  const url = /[\s\\]/.test(text.trim()) ? null : URL.parse(text.trim())
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:') || url.hostname === '') return null
  if (!/^https?:\/\/[^/]/i.test(text.trim()) || /[?#]/.test(text) || url.username || url.password || url.port === '0')
    return null
  return url.origin + url.pathname.replace(/\/+$/, '')
}

const getText = (bytes: Uint8Array): string => formatCidr({ bytes, prefix: bytes.length * 8 })

/** IPv4 addresses that a gateway or the system would connect to for an IPv6 address. IPv4-mapped ones are parsed as IPv4. */
const embedded = (bytes: Uint8Array): Uint8Array[] => {
  if (bytes.length !== 16) return []
  const at = (...places: number[]): Uint8Array => Uint8Array.from(places, (place) => bytes[place] ?? 0)
  const last = at(12, 13, 14, 15)
  const hex = Buffer.from(bytes).toString('hex')
  const found: Uint8Array[] = []
  if (/^0{24}/.test(hex)) found.push(last) // IPv4-compatible (RFC 4291 §2.5.5.1)
  if (/^0{16}ffff0000/.test(hex)) found.push(last) // IPv4-translated (RFC 2765)
  if (hex.startsWith('0064ff9b')) found.push(last, at(6, 7, 9, 10), at(9, 10, 11, 12)) // NAT64 (RFC 6052, RFC 8215)
  if (hex.startsWith('2002')) found.push(at(2, 3, 4, 5)) // 6to4 (RFC 3056)
  if (hex.startsWith('20010000'))
    found.push(
      at(4, 5, 6, 7),
      last.map((byte) => byte ^ 0xff),
    ) // Teredo (RFC 4380)
  if (/^.{16}0[02]005efe/.test(hex)) found.push(last) // ISATAP (RFC 5214)
  return found
}
