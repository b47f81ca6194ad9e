/**
 * A monotonic clock shared by all processes of the machine, finer than wall time. The runtime's own starts with the
 * process. Linux only.
 */
import { dlopen, FFIType, ptr } from 'bun:ffi'

const CLOCK_MONOTONIC = 1

const libc = dlopen('libc.so.6', { clock_gettime: { args: [FFIType.i32, FFIType.ptr], returns: FFIType.i32 } })
const timespec = new BigInt64Array(2)
const address = ptr(timespec)

/** Nanoseconds from an arbitrary start. */
export function machineNs(): bigint {
  libc.symbols.clock_gettime(CLOCK_MONOTONIC, address)
  return (timespec[0] ?? 0n) * 1_000_000_000n + (timespec[1] ?? 0n)
}
