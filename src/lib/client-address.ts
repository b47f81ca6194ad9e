/** Which addresses count as one client for per-client limits. */
import { normaliseIp } from './cidr.ts'

/** A client may use a whole IPv6 /64. All clients without a known address are one. */
export const getClient = (ip: string | null): string => {
  const address = ip === null ? null : normaliseIp(ip)
  if (address === null) return 'unknown'
  return address.includes(':') ? expanded(address).slice(0, 4).join(':') : address
}

const expanded = (address: string): string[] => {
  const [head = '', tail] = address.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : 8 - left.length - right.length
  return [...left, ...Array.from({ length: zeros }, () => '0'), ...right].map((part) => part.replace(/^0+(?=.)/, ''))
}
