/** A session with sockets: the server process, the CLI as an editor runs it, and a record of both sides. */
import { expect } from 'bun:test'
import type { Account } from '../../support/upstream/accounts.ts'
import type { ReceivedRequest } from '../../support/upstream/ledger.ts'
import { isJson } from '../../support/upstream/script.ts'
import type { AppServer, Thread, TurnSeen } from './app-server.ts'
import { type Codex, type CodexOptions, installCodex } from './codex.ts'
import { getItems, startWorld, type World, type WorldOptions } from './world.ts'

interface Session extends AsyncDisposable {
  world: World
  codex: Codex
  editor: AppServer
  thread: Thread
}

interface SessionOptions extends WorldOptions, Pick<CodexOptions, 'model' | 'compactsRemotely'> {
  /** Run before the conversation begins: the CLI prewarms it immediately, before any message. */
  before?: (world: World) => void
}

/**
 * One conversation in an editor. At its end the stand-in has recorded nothing odd, and the CLI connected to nothing
 * else.
 */
export async function startSession(options: SessionOptions = {}): Promise<Session> {
  await using starting = new AsyncDisposableStack()
  const world = starting.use(await startWorld(options))
  options.before?.(world)
  const codex = starting.use(installSocketCodex(world, options))
  const editor = starting.use(await codex.appServer())
  const thread = await editor.startThread()
  const running = starting.move()
  return {
    world,
    codex,
    editor,
    thread,
    async [Symbol.asyncDispose]() {
      await running.disposeAsync()
      expect(world.upstream.oddities).toEqual([])
      expect(codex.sideCalls).toEqual([])
    },
  }
}

/** The CLI with sockets on, in front of the door. */
export function installSocketCodex(world: World, options: SessionOptions = {}): Codex {
  const { model, compactsRemotely } = options
  return installCodex({
    baseUrl: `${world.door.url}/backend-api/codex`,
    auth: { key: world.key },
    sockets: true,
    ...(model !== undefined && { model }),
    ...(compactsRemotely !== undefined && { compactsRemotely }),
  })
}

/** Drained in this order, so that the first account is known. */
export const FIRST = { email: 'first@example.test', plan: 'plus' } as const
export const SECOND = { email: 'second@example.test', plan: 'pro' } as const
export const TWO_ACCOUNTS = { accounts: [FIRST, SECOND], settings: { routingStrategy: 'sequential_drain' } }

/** The accounts of a session with `TWO_ACCOUNTS`, to make them fail. */
export function getAccounts(world: World): { first: Account; second: Account } {
  const [first, second] = world.upstream.accounts
  if (!first || !second) throw new Error('The stand-in did not add its accounts.')
  return { first, second }
}

/** The log entries of every successful turn by socket, and by HTTP. */
export const ON_SOCKETS = { transport: 'websocket', upstreamTransport: 'websocket', status: 'ok', httpStatus: 200 }
export const ON_HTTP = { transport: 'http', upstreamTransport: 'http', status: 'ok', httpStatus: 200 }

/** A turn after which the user has an answer and got no other message. */
export function quiet(text: string | RegExp, rest: Partial<TurnSeen> = {}): Partial<TurnSeen> {
  return {
    status: 'completed',
    complaints: [],
    text: typeof text === 'string' ? text : expect.stringMatching(text),
    ...rest,
  }
}

/** Sends these messages one after another; this account answers each, and the user gets no other message. */
export async function talk(
  { thread }: Pick<Session, 'thread'>,
  account: { email: string },
  ...prompts: string[]
): Promise<void> {
  for (const prompt of prompts) expect(await thread.say(prompt)).toMatchObject(quiet(`Hello from ${account.email}`))
}

/** One model request as the stand-in received it. */
interface Create {
  /** The number of the upstream socket, from 1; `null` for a POST. */
  connection: number | null
  account: string
  isPrewarm: boolean
  previous: string | null
  items: string[]
}

/** All requests to the stand-in, oldest first. */
export function getCreates(world: World): Create[] {
  const accounts = world.accountsUsed()
  return world.turns().map((turn, index) => ({
    connection: turn.connection,
    account: accounts[index] ?? 'no account',
    isPrewarm: field(turn, 'generate') === false,
    previous: getPrevious(turn),
    items: getItems(turn).map(({ type }) => String(type)),
  }))
}

/** The upstream socket each of them came on, `null` for a POST. */
export function getConnections(world: World): (number | null)[] {
  return getCreates(world).map(({ connection }) => connection)
}

/** The statuses of the handshakes at the stand-in, oldest first. */
export function getHandshakes({ upstream }: World): (number | null)[] {
  return upstream.handshakes.map(({ status }) => status)
}

function getPrevious(turn: ReceivedRequest): string | null {
  const id = field(turn, 'previous_response_id')
  return typeof id === 'string' ? id : null
}

function field({ body }: ReceivedRequest, name: string): unknown {
  return isJson(body) ? body[name] : undefined
}

/** The connections to the responses route, in order: `101`, `426`, or `POST 200`. */
export function getVisits({ door }: World): string[] {
  return door.visits.map(({ request, isUpgrade, status }) =>
    isUpgrade ? `${status}` : `${request.split(' ')[0]} ${status}`,
  )
}
