/** Either side is killed at random points under load; afterwards all totals match and every client is served again. */
import { expect, test } from 'bun:test'
import { SEED, seededRandom } from '../support/property.ts'
import { live, type Tally } from './chaos-client.ts'
import { applyRandomKill, type KillableClient } from './chaos-kills.ts'
import { makeAnswer, randomUpTo } from './fuzz-plan.ts'
import { create, getEnds, getTypes, open } from './ground.ts'
import {
  clearAccountBlocks,
  expectBalance,
  getSize,
  KEPT_DESCRIPTORS,
  openDescriptors,
  startTrial,
  type Trial,
  withSeedInError,
} from './trial.ts'

const KILLS = getSize('SOCKET_KILLS', 100)
/** After each the clients leave and the books must balance. */
const ROUND_KILLS = 50
const CLIENTS = 12
const MAX_BETWEEN_KILLS_MS = 30
const REVIVE_EVERY = 5

test(
  `${KILLS} kills under load, seed ${SEED}`,
  async () => {
    await withSeedInError(async () => {
      const trial = await startTrial()
      await using service = trial.service
      const random = seededRandom(SEED)
      service.upstream.script(() => makeAnswer(random))
      const tally: Tally = { completed: 0, failed: 0, overHttp: 0, cut: 0 }
      let afterFirst: number | null = null
      for (let killed = 0; killed < KILLS; killed += ROUND_KILLS) {
        await round(trial, { random, tally, kills: Math.min(ROUND_KILLS, KILLS - killed) })
        await service.change({ upstreamStreamTransport: 'auto', apiKeyAuthEnabled: false })
        for (const { sim } of service.members) sim.clearFaults()
        clearAccountBlocks(service)
        await expectServed(trial)
        await expectBalance(trial)
        afterFirst ??= openDescriptors()
      }
      if (afterFirst !== null) expect((openDescriptors() ?? 0) - afterFirst).toBeLessThan(KEPT_DESCRIPTORS)
      expect(tally.completed).toBeGreaterThan(KILLS / 4) // there was load
      expect(tally.cut).toBeGreaterThan(0)
    })
  },
  60_000 + KILLS * 100,
)

const round = async (
  trial: Trial,
  { random, tally, kills }: { random: () => number; tally: Tally; kills: number },
): Promise<void> => {
  const { service } = trial
  const victims = Array.from({ length: CLIENTS }, (): KillableClient => ({ cut: null }))
  let left = kills
  const clients = victims.map((victim) => live(trial, { random, victim, tally, isOver: () => left === 0 }))
  const killer = async () => {
    for (; left > 0; left--) {
      await Bun.sleep(randomUpTo(random, MAX_BETWEEN_KILLS_MS))
      await applyRandomKill({ random, service, victims })
      if (left % REVIVE_EVERY === 0) clearAccountBlocks(service)
    }
  }
  await Promise.all([killer(), ...clients])
}

/** On a new socket, at the first try. */
const expectServed = async ({ service }: Trial): Promise<void> => {
  const socket = await open(service)
  expect(getEnds(getTypes(await socket.turn(create())))).toEqual(['response.completed'])
  socket.terminate()
}
