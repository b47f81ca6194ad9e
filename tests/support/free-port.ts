/**
 * A port of 127.0.0.1 that nobody listens on, and that hardly anybody else is given before it is used: below those that the
 * system gives out (`ip_local_port_range`, from 32768 on), and test processes side by side have ranges or beginnings of their
 * own. None comes again before all others of the range did.
 */
const FIRST = 12_000
const PER_PROCESS = 400
const PROCESSES = 50

let given = Math.floor(process.pid / PROCESSES) * 37

export const freePort = (): number => {
  for (let tries = 0; tries < PER_PROCESS; tries++) {
    const port = FIRST + (process.pid % PROCESSES) * PER_PROCESS + (given++ % PER_PROCESS)
    if (isFree(port)) return port
  }
  throw new Error(`Somebody listens on all ${PER_PROCESS} ports of this process.`)
}

const isFree = (port: number): boolean => {
  try {
    Bun.listen({ hostname: '127.0.0.1', port, socket: { data() {} } }).stop(true)
    return true
  } catch {
    return false // somebody has it
  }
}
