/** `sluice healthcheck`: whether the local server is ready, for container health checks. */
import { getConfig, type Run } from './command.ts'
import { READY, readiness } from './own-server.ts'

/** 0 when ready, otherwise 1. Does not open the database. */
export const healthcheck: Run = async (io) => {
  const answer = await readiness(getConfig(io))
  if (answer !== READY) io.stderr(`sluice: The server is not ready: ${answer}.\n`)
  return answer === READY ? 0 : 1
}
