/** Reports the state of the service to systemd (sd_notify(3)). Does nothing when systemd does not wait for it. */

/** From Linux headers, the same on x86-64 and arm64. */
const AF_UNIX = 1
const SOCK_DGRAM = 2
const SOCK_CLOEXEC = 0o2000000

/** Sends `state` to the socket at `address`, the value of NOTIFY_SOCKET. Returns whether it was sent. */
export const sdNotify = (address: string | undefined, state: string): boolean => {
  if (!address || process.platform !== 'linux') return false
  const ffi = process.getBuiltinModule('bun:ffi') as typeof import('bun:ffi') // as: its type knows only the modules of Node
  try {
    return send(ffi, address, Buffer.from(state))
  } catch {
    return false
  }
}

const send = ({ dlopen, ptr }: typeof import('bun:ffi'), address: string, state: Buffer): boolean => {
  const library = dlopen('libc.so.6', {
    socket: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
    sendto: { args: ['i32', 'ptr', 'usize', 'i32', 'ptr', 'u32'], returns: 'i64' },
    close: { args: ['i32'], returns: 'i32' },
  })
  const { socket, sendto, close } = library.symbols
  // struct sockaddr_un; a leading @ means the zero byte of an abstract name.
  const name = Buffer.from(address.replace(/^@/, '\0'))
  const to = Buffer.alloc(2 + name.length)
  to.writeUInt16LE(AF_UNIX)
  name.copy(to, 2)
  try {
    const descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)
    if (descriptor < 0) return false
    const sent = sendto(descriptor, ptr(state), state.length, 0, ptr(to), to.length)
    close(descriptor)
    return Number(sent) === state.length
  } finally {
    library.close()
  }
}
