/** What all routes and sockets of the stand-in upstream share, and how it plays an early fault. */
import type { Account, SimAccounts } from './accounts.ts'
import type { Fault } from './faults.ts'
import type { Ledger } from './ledger.ts'
import type { LiveCallSocket } from './live-calls.ts'
import type { Step } from './plan.ts'
import { ConnectionReset, Refusal } from './refusal.ts'
import type { RelayAnswer } from './relay-routes.ts'
import type { Answer, Script } from './script.ts'
import type { SignIns } from './sign-ins.ts'
import type { Outgoing } from './socket-frames.ts'
import type { Sleep } from './stream.ts'
import type { Mint } from './tokens.ts'

/** `script` and `compactRetired` can change while it runs. */
export type World = {
  now: () => number
  sleep: Sleep
  mint: Mint
  accounts: SimAccounts
  ledger: Ledger
  signIns: SignIns
  script: Script | null
  relayAnswer: RelayAnswer | null
  compactRetired: boolean
  /** By call id. */
  liveCalls: Map<string, Account>
  /** In the order in which they opened. */
  liveSockets: LiveCallSocket[]
  /** Frames that the socket of a call sends as it opens. */
  liveGreeting: string[]
  /** Encoded steps of responses that are replayed to every client, over HTTP and over sockets. */
  replays: WeakMap<Answer, Step[]>
  socketReplays: WeakMap<Answer, Outgoing[]>
}

/** A client that waits for a response: it may disconnect, and the record then says so. */
type Caller = { signal: AbortSignal; record: { aborted: boolean } }

/** Plays the part of a fault that comes before or instead of a response; throws `Refusal` or `ConnectionReset`. */
export async function applyEarlyFault(fault: Fault | null, world: World, caller: Caller): Promise<void> {
  if (fault?.delayHeadersMs) await pause(fault.delayHeadersMs, world, caller)
  if (fault?.reset) throw new ConnectionReset('The connection breaks before any header.')
  if (fault?.status !== undefined) throw new Refusal(fault.status, fault.body, fault.headers)
}

/** Waits, unless the client disconnects first; then it throws the client's reason. */
async function pause(ms: number, world: World, { signal, record }: Caller): Promise<void> {
  const left = Promise.withResolvers<void>()
  signal.addEventListener('abort', () => left.resolve(), { once: true })
  if (!signal.aborted) await Promise.race([world.sleep(ms, signal), left.promise])
  if (!signal.aborted) return
  record.aborted = true
  throw signal.reason
}
