/** Random frames against an upstream that fails at random: no crash, no leak, and one end for each turn. */
import { expect, test } from 'bun:test'
import { SEED, seededRandom } from '../support/property.ts'
import { play } from './fuzz-client.ts'
import { makeAnswer, makePlan } from './fuzz-plan.ts'
import {
  ACCOUNTS,
  clearAccountBlocks,
  expectBalance,
  getSize,
  KEPT_DESCRIPTORS,
  openDescriptors,
  startTrial,
  withSeedInError,
} from './trial.ts'

const FRAMES = getSize('SOCKET_FRAMES', 2000)
/** After each the clients have left and the books must balance. */
const ROUND_FRAMES = 1000
const CLIENTS = 24

test(
  `${FRAMES} random frames, seed ${SEED}`,
  async () => {
    await withSeedInError(async () => {
      const trial = await startTrial()
      await using _service = trial.service
      const random = seededRandom(SEED)
      const randomAnswer = seededRandom(SEED + 1)
      trial.service.upstream.script(() => makeAnswer(randomAnswer))
      let afterFirst: number | null = null
      for (let played = 0; played < FRAMES; ) {
        let left = Math.min(ROUND_FRAMES, FRAMES - played)
        played += left
        const client = async () => {
          while (left > 0) {
            const plan = makePlan(random, ACCOUNTS)
            left -= plan.steps.length
            await play(trial, plan)
            clearAccountBlocks(trial.service)
          }
        }
        await Promise.all(Array.from({ length: CLIENTS }, client))
        await expectBalance(trial)
        afterFirst ??= openDescriptors()
      }
      if (afterFirst !== null) expect((openDescriptors() ?? 0) - afterFirst).toBeLessThan(KEPT_DESCRIPTORS)
    })
  },
  60_000 + FRAMES * 20,
)
