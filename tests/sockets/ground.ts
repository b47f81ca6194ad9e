/** Shared by the socket tests: a live server that is stopped afterwards, clients, and a check for leaks. */
import { expect } from 'bun:test'
import { eq } from 'drizzle-orm'
import { commit, type Tx } from '../../db/commit.ts'
import { accounts } from '../../db/schema/accounts.ts'
import type { Actor } from '../../src/model/audit/audit.ts'
import { codexBody } from '../support/app.ts'
import { type LiveOptions, type LiveService, liveService } from '../support/live.ts'
import { connectSocket, type SocketEvent, type TestSocket } from '../support/socket-client.ts'
import { until } from '../support/until.ts'

export const NATIVE = '/backend-api/codex/responses'
export const PUBLIC = '/v1/responses'
export const CAPABILITY = 'x-codex-lb-required-capability'

export type SocketWorld = LiveService & AsyncDisposable

/** A service that stops when the test is over. */
export const startSocketWorld = async (options: LiveOptions = {}): Promise<SocketWorld> => {
  const service = await liveService(options)
  return Object.assign(service, { [Symbol.asyncDispose]: () => service.stop() })
}

interface Socketed {
  path?: string
  headers?: Record<string, string>
}

/** A client's socket, to the native route by default. */
export const open = (service: SocketWorld, { path = NATIVE, headers = {} }: Socketed = {}): Promise<TestSocket> =>
  connectSocket(service.socketUrl + path, { headers })

/** A `response.create` as the native client sends it, small. */
export const create = (text = 'hello', more: Record<string, unknown> = {}) => ({
  type: 'response.create',
  ...codexBody(text, more),
})

/** A turn that continues `previous`, with only the new message. */
export const createFollowUp = (previous: string | null, text = 'go on', more: Record<string, unknown> = {}) =>
  create(text, { previous_response_id: previous, ...more })

export const prewarm = (more: Record<string, unknown> = {}) => create('warm', { generate: false, ...more })

export const getTypes = (events: readonly SocketEvent[]): string[] => events.map(({ type }) => type)

/** Id of the response a turn ended with. */
export const idOf = (events: readonly SocketEvent[]): string => {
  const response = events.at(-1)?.response as { id?: string } | undefined // as: a terminal event has one
  if (!response?.id) throw new Error(`No response ended there: ${JSON.stringify(events.at(-1))}`)
  return response.id
}

/** Status and code of the error frame that was the whole answer. */
export const getRefusal = (events: readonly SocketEvent[]): [status: unknown, code: unknown] => {
  expect(getTypes(events)).toEqual(['error'])
  const { status, error } = events[0] as { status?: unknown; error?: { code?: unknown } } & SocketEvent // as: shown by the test
  return [status, error?.code]
}

export const expectCompleted = (events: readonly SocketEvent[]): void =>
  expect(getTypes(events).filter((type) => ENDS.has(type))).toEqual(['response.completed'])

const ENDS = new Set(['response.completed', 'response.failed', 'response.incomplete', 'error'])

/** The events that end a turn; one that was served well has exactly one. */
export const getEnds = (types: readonly string[]): string[] => types.filter((type) => ENDS.has(type))

/** Nothing of any turn is left, and the upstream recorded nothing odd. `upstreamSockets`: those of open sessions. */
export const expectNothingLeft = async (service: SocketWorld, { upstreamSockets = 0 } = {}): Promise<void> => {
  const { bindings, upstream } = service
  const left = () => ({
    inFlight: bindings.pool.all().reduce((sum, { inFlight }) => sum + inFlight, 0),
    turns: bindings.turns.size,
    heldBytes: bindings.bodies.heldBytes,
    openStreams: upstream.openStreams,
    openSockets: upstream.openSockets,
  })
  const nothing = { inFlight: 0, turns: 0, heldBytes: 0, openStreams: 0, openSockets: upstreamSockets }
  await until(() => Bun.deepEquals(left(), nothing), 'nothing left').catch(() => {}) // the remaining items say more
  expect(left()).toEqual(nothing)
  expect(upstream.oddities).toEqual([])
}

/** Closes every client and waits until the server has noticed. */
export const leave = async (service: SocketWorld, ...sockets: TestSocket[]): Promise<void> => {
  for (const socket of sockets) socket.terminate()
  await until(() => service.bindings.sockets.size === 0, 'the clients gone')
}

export const ACTOR: Actor = { id: 'test', method: null, address: null, at: 0 }

export const write = <T>({ bindings }: SocketWorld, work: (tx: Tx) => Promise<T>): Promise<T> =>
  commit(bindings.db, work)

/** Makes every strategy use this account before the others. */
export const prefer = async (service: SocketWorld, id: string): Promise<void> => {
  await write(service, (tx) =>
    tx.update(accounts).set({ routingPolicy: 'burn_first' }).where(eq(accounts.id, id)).run(),
  )
  await service.bindings.pool.reload()
}

/** What every limit of the key has counted, and what is still reserved, which is nothing once all turns have ended. */
export const getLimits = ({ bindings }: SocketWorld, key: string) =>
  Object.fromEntries(
    (bindings.keys.find(key)?.limits ?? []).map(({ type, settled, reserved }) => [type, { settled, reserved }]),
  )
