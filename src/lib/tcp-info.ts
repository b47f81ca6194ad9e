/** Bytes the system has received on a TCP connection of this process. Linux only; elsewhere `openTcpInfo` returns null. */
import { readFileSync } from 'node:fs'
import { normaliseIp } from './cidr.ts'

export interface Peer {
  address: string
  port: number
}

export interface TcpInfo {
  /** Descriptors of the connections with these peers; null if there is none. */
  find(peers: readonly Peer[]): (number | null)[]
  /** Bytes received since the connection opened. Do not call after it is closed, because descriptors are reused. */
  received(descriptor: number): number | null
}

/** From Linux headers (linux/tcp.h, asm-generic/socket.h), the same on x86-64 and arm64. */
const IPPROTO_TCP = 6
const TCP_INFO = 11
const BYTES_RECEIVED_AT = 128
const AF_INET = 2
const AF_INET6 = 10

/**
 * Takes about 2.5 MB (Bun 1.4.5), so it is opened on demand. Null when the C library cannot be called: not Linux, or
 * not glibc.
 */
export const openTcpInfo = (): TcpInfo | null => {
  if (process.platform !== 'linux') return null
  const ffi = process.getBuiltinModule('bun:ffi') as typeof import('bun:ffi') // as: its type knows only the modules of Node
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

  const hasPeer = (descriptor: number): boolean => {
    length[0] = name.byteLength
    return symbols.getpeername(descriptor, ptr(name), ptr(length)) === 0
  }

  return {
    find(peers) {
      const keys = peers.map(toKey)
      const missing = new Set(keys)
      const ports = new Set(peers.map(({ port }) => port))
      const found = new Map<string, number>()
      for (let descriptor = 0, end = tableSize(); descriptor < end && missing.size > 0; descriptor++) {
        if (!hasPeer(descriptor) || !ports.has(portIn(name))) continue
        const key = peerIn(name)
        if (key !== null && missing.delete(key)) found.set(key, descriptor)
      }
      return keys.map((key) => found.get(key) ?? null)
    },
    received(descriptor) {
      length[0] = info.byteLength
      const isKnown = symbols.getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, ptr(info), ptr(length)) === 0
      return isKnown && length[0] > BYTES_RECEIVED_AT ? Number(info.getBigUint64(BYTES_RECEIVED_AT, true)) : null
    },
  }
}

/** All descriptors are below this. Listing `/proc/self/fd` takes longer than trying them all (Bun 1.4.5). */
const tableSize = (): number => Number(/^FDSize:\s*(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? 0)

const toKey = ({ address, port }: Peer): string => `${normaliseIp(address)} ${port}`

const portIn = (name: DataView): number => name.getUint16(2)

/** A `sockaddr`: family, port in network order, then the address. */
const peerIn = (name: DataView): string | null => {
  const family = name.getUint16(0, true)
  const address = family === AF_INET ? ipv4At(name, 4) : family === AF_INET6 ? ipv6At(name, 8) : null
  return address && toKey({ address, port: portIn(name) })
}

const ipv4At = (name: DataView, at: number): string =>
  Array.from({ length: 4 }, (_, n) => name.getUint8(at + n)).join('.')

const ipv6At = (name: DataView, at: number): string =>
  Array.from({ length: 8 }, (_, n) => name.getUint16(at + 2 * n).toString(16)).join(':')
