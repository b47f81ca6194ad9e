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
  /** Run before the conversation begins: the CLI prewarms it at once, without waiting for a word. */
  before?: (world: World) => void
}

/** One conversation in an editor. At its end the stand-in has nothing to object to, and the CLI called nobody else. */
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

/** Drained in this order, so that it is known which account is asked first. */
export const FIRST = { email: 'first@example.test', plan: 'plus' } as const
export const SECOND = { email: 'second@example.test', plan: 'pro' } as const
export const TWO_ACCOUNTS = { accounts: [FIRST, SECOND], settings: { routingStrategy: 'sequential_drain' } }

/** The accounts of a session with `TWO_ACCOUNTS`, to make them fail. */
export function getAccounts(world: World): { first: Account; second: Account } {
  const [first, second] = world.upstream.accounts
  if (!first || !second) throw new Error('The stand-in did not add its accounts.')
  return { first, second }
}

/** What the log says of every turn by socket, and by HTTP, that went well. */
export const ON_SOCKETS = { transport: 'websocket', upstreamTransport: 'websocket', status: 'ok', httpStatus: 200 }
export const ON_HTTP = { transport: 'http', upstreamTransport: 'http', status: 'ok', httpStatus: 200 }

/** A turn after which the person has an answer and was told of nothing else. */
export function quiet(text: string | RegExp, rest: Partial<TurnSeen> = {}): Partial<TurnSeen> {
  return {
    status: 'completed',
    complaints: [],
    text: typeof text === 'string' ? text : expect.stringMatching(text),
    ...rest,
  }
}

/** Says these one after the other; this account answers each, and the person is told of nothing else. */
export async function talk(
  { thread }: Pick<Session, 'thread'>,
  account: { email: string },
  ...prompts: string[]
): Promise<void> {
  for (const prompt of prompts) expect(await thread.say(prompt)).toMatchObject(quiet(`Hello from ${account.email}`))
}

/** One model request as the stand-in got it. */
interface Create {
  /** Of the upstream socket, from 1; `null` for a POST. */
  connection: number | null
  account: string
  isPrewarm: boolean
  previous: string | null
  items: string[]
}

/** Everything the stand-in was asked, oldest first. */
export function getCreates(world: World): Create[] {
  const accounts = world.accountsUsed()
  return world.turns().map((turn, index) => ({
    connection: turn.connection,
    account: accounts[index] ?? 'nobody',
    isPrewarm: field(turn, 'generate') === false,
    previous: getPrevious(turn),
    items: getItems(turn).map(({ type }) => String(type)),
  }))
}

/** The upstream socket each of them came on, `null` for a POST. */
export function getConnections(world: World): (number | null)[] {
  return getCreates(world).map(({ connection }) => connection)
}

/** The statuses of the handshakes that the stand-in saw, oldest first. */
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
