/** The ways in which either side of a socket fails, or its situation changes, during turns. */
import type { Fault } from '../support/upstream/faults.ts'
import { faults } from '../support/upstream/faults.ts'
import type { Random } from './fuzz-plan.ts'
import { pick, randomUpTo } from './fuzz-plan.ts'
import type { SocketWorld } from './ground.ts'

/** A client that can be cut off from outside, at any point. */
export interface KillableClient {
  cut: ((how: 'terminates' | 'closes') => void) | null
}

interface Scene {
  random: Random
  service: SocketWorld
  victims: readonly KillableClient[]
}

type Kill = (scene: Scene) => Promise<unknown>

/** Does one of them. */
export const applyRandomKill = (scene: Scene): Promise<unknown> => pick(scene.random, KILLS)(scene)

const terminateClient: Kill = async ({ random, victims }) => pick(random, victims).cut?.('terminates')
const closeClient: Kill = async ({ random, victims }) => pick(random, victims).cut?.('closes')

/** For all accounts, between turns and in the middle of them. */
const closeUpstreams: Kill = async ({ random, service }) =>
  service.upstream.closeSockets(pick(random, [1000, 1001, 1011, 1012]))

/** Meets the next turn of an account. */
const breakUpstream: Kill = async ({ random, service }) => {
  const afterEvents = randomUpTo(random, 12)
  pick(random, service.members).sim.next(
    pick<Fault>(random, [
      { close: { code: 1011, afterEvents } },
      { terminate: { afterEvents } },
      { dropAfter: { events: afterEvents, how: 'reset' } },
      { binaryFrame: { afterEvents } },
      { closeIdle: { code: 1001 } },
      { reset: true },
      { on: 'handshake', reset: true },
    ]),
  )
}

const failAccount: Kill = async ({ random, service }) => {
  const { sim } = pick(random, service.members)
  if (random() < 0.2) sim.expireAccessToken()
  else
    sim.next(
      pick<Fault>(random, [
        faults.usageLimit({ resetsAt: Date.now() + 3_600_000 }),
        faults.rateLimited(1),
        faults.serverError(),
        faults.unauthorized(),
        { failAfterCreated: { code: 'usage_limit_reached', message: 'The usage limit has been reached' } },
        { on: 'handshake', ...faults.overloaded() },
        { on: 'handshake', status: 426, body: 'Upgrade Required' },
      ]),
    )
}

const flipTransport: Kill = ({ random, service }) =>
  service.change({ upstreamStreamTransport: pick(random, ['auto', 'auto', 'websocket', 'http'] as const) })

const flipKeyDemand: Kill = ({ random, service }) => service.change({ apiKeyAuthEnabled: random() < 0.5 })

const pauseAccount: Kill = async ({ random, service }) => {
  const { id } = pick(random, service.members)
  const isActive = service.bindings.pool.get(id)?.state.status === 'active'
  if (isActive) service.bindings.pool.apply(id, { kind: 'pause', at: Date.now() })
}

const KILLS: readonly Kill[] = [
  terminateClient,
  terminateClient,
  terminateClient,
  closeClient,
  closeUpstreams,
  closeUpstreams,
  breakUpstream,
  breakUpstream,
  failAccount,
  flipTransport,
  flipKeyDemand,
  pauseAccount,
]
