/** How many bytes the system has received on a TCP connection of this process. Linux only: elsewhere `openTcpInfo` gives null. */
import { readdirSync } from 'node:fs'
import { normaliseIp } from './cidr.ts'

export interface Peer {
  address: string
  port: number
}

export interface TcpInfo {
  /** The descriptors of the connections with these peers; null for one that has none (any more). */
  find(peers: readonly Peer[]): (number | null)[]
  /** Bytes received since the connection was opened. Not to be called once it is closed: the next one gets its descriptor. */
  received(descriptor: number): number | null
}

/** From the headers of Linux (linux/tcp.h, asm-generic/socket.h), the same on x86-64 and arm64. */
const IPPROTO_TCP = 6
const TCP_INFO = 11
const BYTES_RECEIVED_AT = 128
const AF_INET = 2
const AF_INET6 = 10

/**
 * Takes about 2.5 MB (measured), so it is opened only when it is needed. Null where the C library cannot be called: not on
 * Linux, or another library than glibc.
 */
export const openTcpInfo = async (): Promise<TcpInfo | null> => {
  if (process.platform !== 'linux') return null
  const ffi = await import('bun:ffi')
  try {
    return bind(ffi)
  } catch {
    return null
  }
}

const bind = ({ dlopen, ptr }: typeof import('bun:ffi')): TcpInfo => {
  const { symbols } = dlopen('libc.so.6', {
    getsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'ptr'], returns: 'i32' },
    getpeername: { args: ['i32', 'ptr', 'ptr'], returns: 'i32' },
  })
  const info = new DataView(new ArrayBuffer(256))
  const name = new DataView(new ArrayBuffer(128))
  const length = new Uint32Array(1)

  const peerOf = (descriptor: number): string | null => {
    length[0] = name.byteLength
    return symbols.getpeername(descriptor, ptr(name), ptr(length)) === 0 ? peerIn(name) : null
  }

  return {
    find(peers) {
      const descriptors = new Map<string | null, number>()
      for (const entry of readdirSync('/proc/self/fd')) descriptors.set(peerOf(Number(entry)), Number(entry))
      return peers.map((peer) => descriptors.get(keyOf(peer)) ?? null)
    },
    received(descriptor) {
      length[0] = info.byteLength
      const isKnown = symbols.getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, ptr(info), ptr(length)) === 0
      return isKnown && length[0] > BYTES_RECEIVED_AT ? Number(info.getBigUint64(BYTES_RECEIVED_AT, true)) : null
    },
  }
}

const keyOf = ({ address, port }: Peer): string => `${normaliseIp(address)} ${port}`

/** A `sockaddr`: family, port in network order, then the address. */
const peerIn = (name: DataView): string | null => {
  const family = name.getUint16(0, true)
  const port = name.getUint16(2)
  const address = family === AF_INET ? ipv4At(name, 4) : family === AF_INET6 ? ipv6At(name, 8) : null
  return address && keyOf({ address, port })
}

const ipv4At = (name: DataView, at: number): string =>
  Array.from({ length: 4 }, (_, n) => name.getUint8(at + n)).join('.')

const ipv6At = (name: DataView, at: number): string =>
  Array.from({ length: 8 }, (_, n) => name.getUint16(at + 2 * n).toString(16)).join(':')
