/** Ports for the servers of tests. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * A free port of 127.0.0.1 that other processes are unlikely to use: below the ephemeral ports (`ip_local_port_range`,
 * from 32768 on), with a separate range or start for each test process. A port is reused only after all others of the
 * range.
 */
const FIRST = 12_000
const PER_PROCESS = 400
const PROCESSES = 50

let given = Math.floor(process.pid / PROCESSES) * 37

export const freePort = (): number => {
  for (let tries = 0; tries < PER_PROCESS; tries++) {
    const port = FIRST + (process.pid % PROCESSES) * PER_PROCESS + (given++ % PER_PROCESS)
    if (claim(port) && isFree(port)) return port
  }
  throw new Error(`Somebody listens on all ${PER_PROCESS} ports of this process.`)
}

const isFree = (port: number): boolean => {
  try {
    Bun.listen({ hostname: '127.0.0.1', port, socket: { data() {} } }).stop(true)
    return true
  } catch {
    return false // in use
  }
}

const CLAIMS = join(tmpdir(), 'sluice-test-ports')
mkdirSync(CLAIMS, { recursive: true })

/**
 * Keeps the port from other test processes, until this one ends: a server takes seconds to listen on it, and two servers
 * with shared ports would both succeed.
 */
function claim(port: number): boolean {
  const path = join(CLAIMS, String(port))
  const owner = Number(read(path))
  if (owner === process.pid) return true
  if (owner > 0 && isRunning(owner)) return false
  writeFileSync(path, String(process.pid))
  return true
}

const read = (path: string): string => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return '' // not claimed yet
  }
}

const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
