/**
 * Decides which of the processes that share a port (SO_REUSEPORT) gets new connections. Without it a listener could only
 * be closed together with the connections in its queue, which are then reset (measured: 76 of 20,000 over 20 restarts).
 */

/** From Linux headers (asm-generic/socket.h, linux/filter.h), the same on x86-64 and arm64. */
const SOL_SOCKET = 1
const SO_ACCEPTCONN = 30
const SO_ATTACH_REUSEPORT_CBPF = 51
const BPF_LOAD_WORD = 0x20
const BPF_MODULO = 0x94
const BPF_JUMP_IF_EQUAL = 0x15
const BPF_RETURN = 0x06
/** Offset at which a load gives a random number. */
const RANDOM = 0xffff_f038
const MAX_DESCRIPTORS = 65_536

/**
 * From now on, new connections to `port` are shared out to the listeners at `positions`, counted in the order in which
 * they began to listen; when one closes, the last takes its place. Without a listener at a position, the kernel chooses
 * among all. Returns whether it worked: on Linux with glibc.
 */
export const steerPort = (port: number, positions: readonly number[]): boolean => {
  if (process.platform !== 'linux') return false
  const ffi = process.getBuiltinModule('bun:ffi') as typeof import('bun:ffi') // as: its type knows only the modules of Node
  try {
    return attach(ffi, port, positions)
  } catch {
    return false
  }
}

const attach = ({ dlopen, ptr }: typeof import('bun:ffi'), port: number, positions: readonly number[]): boolean => {
  const library = dlopen('libc.so.6', {
    getsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'ptr'], returns: 'i32' },
    getsockname: { args: ['i32', 'ptr', 'ptr'], returns: 'i32' },
    setsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'u32'], returns: 'i32' },
  })
  const { getsockopt, getsockname, setsockopt } = library.symbols
  const flag = new Uint32Array(1)
  const name = new DataView(new ArrayBuffer(128))
  const length = new Uint32Array(1)

  const isOurs = (descriptor: number): boolean => {
    length[0] = flag.byteLength
    const isListener = getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, ptr(flag), ptr(length)) === 0 && flag[0] === 1
    if (!isListener) return false
    length[0] = name.byteLength
    return getsockname(descriptor, ptr(name), ptr(length)) === 0 && name.getUint16(2) === port
  }

  try {
    let descriptor = 0
    while (!isOurs(descriptor)) if (++descriptor === MAX_DESCRIPTORS) return false
    const steps = stepsFor(positions)
    const filter = new DataView(new ArrayBuffer(8 * steps.length)) // struct sock_filter: code, two jumps, constant
    for (const [at, { code, skipUnlessEqual = 0, value }] of steps.entries()) {
      filter.setUint16(8 * at, code, true)
      filter.setUint8(8 * at + 3, skipUnlessEqual)
      filter.setUint32(8 * at + 4, value, true)
    }
    const program = new BigUint64Array([BigInt(steps.length), BigInt(ptr(filter))]) // struct sock_fprog: length, filters
    return setsockopt(descriptor, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, ptr(program), program.byteLength) === 0
  } finally {
    library.close()
  }
}

interface Step {
  code: number
  skipUnlessEqual?: number
  value: number
}

/** Picks one of the positions at random. */
const stepsFor = (positions: readonly number[]): Step[] => {
  const chosen = positions.flatMap((position, at) => [
    { code: BPF_JUMP_IF_EQUAL, skipUnlessEqual: 1, value: at },
    { code: BPF_RETURN, value: position },
  ])
  const last = { code: BPF_RETURN, value: positions[0] ?? 0 }
  return [{ code: BPF_LOAD_WORD, value: RANDOM }, { code: BPF_MODULO, value: positions.length }, ...chosen, last]
}
