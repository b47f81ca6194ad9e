/** `sluice healthcheck`: asks the server of this machine whether it is ready, for container health checks. */
import { request } from 'node:http'
import { type Command, configOf, noArguments, readArgs } from './command.ts'

const TIMEOUT_MS = 3000

/** 0 when ready, else 1. Opens neither the database nor any proxy of the environment. */
export const healthcheck: Command = async (args, io) => {
  noArguments(readArgs(args, {}).positionals)
  const { HOST, PORT } = configOf(io)
  const host = HOST.replace(/^\[(.*)\]$/, '$1') // an IPv6 address may be written as in a URL
  const answer = await ask(['0.0.0.0', '::', 'localhost'].includes(host) ? '127.0.0.1' : host, PORT)
  if (answer !== 200) io.stderr(`sluice: not ready (${answer})\n`)
  return answer === 200 ? 0 : 1
}

/** The status, or why there is none. */
const ask = (hostname: string, port: number): Promise<number | string> => {
  const { promise, resolve } = Promise.withResolvers<number | string>()
  const asked = request({ hostname, port, path: '/health/ready', timeout: TIMEOUT_MS }, (response) => {
    response.resume()
    resolve(response.statusCode ?? 'no status')
  })
  asked.once('timeout', () => {
    resolve(`no answer within ${TIMEOUT_MS} ms`)
    asked.destroy()
  })
  asked.once('error', (err) => resolve(err.message))
  asked.end()
  return promise
}
