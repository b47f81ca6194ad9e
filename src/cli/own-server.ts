/** Calls the server of this environment, without a proxy. */
import { type IncomingMessage, request } from 'node:http'
import type { Config } from '../boot/env.ts'

type Address = Pick<Config, 'HOST' | 'PORT'>

interface Call {
  path: string
  /** Sent as JSON with POST; without it, GET. */
  json?: unknown
  headers?: Readonly<Record<string, string>>
  timeoutMs: number
}

interface Answer {
  status: number
  text: string
}

/** The local URL for browsers and clients. */
export const ownUrl = (address: Address): string => {
  const host = getHost(address)
  return `http://${host.includes(':') ? `[${host}]` : host}:${address.PORT}`
}

/** The answer, or a text saying why there is none. */
export const callOwnServer = (address: Address, { path, json, headers, timeoutMs }: Call): Promise<Answer | string> => {
  const { promise, resolve } = Promise.withResolvers<Answer | string>()
  const body = json === undefined ? undefined : JSON.stringify(json)
  const asked = request(
    {
      hostname: getHost(address),
      port: address.PORT,
      path,
      method: body === undefined ? 'GET' : 'POST',
      headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
      timeout: timeoutMs,
    },
    (response) => void getText(response).then((text) => resolve({ status: response.statusCode ?? 0, text }), failed),
  )
  const failed = (err: unknown) =>
    resolve(isRefused(err) ? NOT_RUNNING : err instanceof Error ? err.message : String(err))
  asked.once('timeout', () => {
    resolve(`no answer within ${timeoutMs} ms`)
    asked.destroy()
  })
  asked.once('error', failed)
  asked.end(body)
  return promise
}

/** `ready`, `not ready`, or a text saying why there is no answer. */
export const readiness = async (address: Address, timeoutMs = 3000): Promise<string> => {
  const answer = await callOwnServer(address, { path: '/health/ready', timeoutMs })
  if (typeof answer === 'string') return answer
  return answer.status === 200 ? READY : `not ready (HTTP ${answer.status})`
}

export const READY = 'ready'
/** Nothing listens at its address. */
export const NOT_RUNNING = 'it is not running'

const isRefused = (err: unknown): boolean => err instanceof Error && 'code' in err && err.code === 'ECONNREFUSED'

const getText = async (response: IncomingMessage): Promise<string> => {
  const parts: Buffer[] = []
  for await (const part of response) parts.push(part as Buffer) // as: no encoding was set
  return Buffer.concat(parts).toString()
}

/** A local address without brackets. */
const getHost = ({ HOST }: Address): string => {
  const host = HOST.replace(/^\[(.*)\]$/, '$1')
  return ['0.0.0.0', '::', 'localhost'].includes(host) ? '127.0.0.1' : host
}
