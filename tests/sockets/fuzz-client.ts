/** Plays the client of a plan, and requires exactly the expected responses for each frame. */
import { connectSocket, type TestSocket } from '../support/socket-client.ts'
import type { Plan, Step, Wait } from './fuzz-plan.ts'
import { createTurnChecker, type Trial, type TurnChecker } from './trial.ts'

const MOMENT_MS = 2

interface Player {
  socket: TestSocket
  judge: TurnChecker
  /** Frames that have to be answered by an end. */
  asked: number
}

/** Resolves when the client has left. Rejects with the first thing that was wrong, and the plan it happened in. */
export const play = async ({ service, authorization }: Trial, plan: Plan): Promise<void> => {
  for (const { account, fault } of plan.faults) service.members[account]?.sim.next(fault)
  const headers = plan.hasKey ? { authorization } : undefined
  const socket = await connectSocket(service.socketUrl + plan.path, { headers })
  const player: Player = { socket, judge: createTurnChecker(), asked: 0 }
  try {
    for (const step of plan.steps.slice(0, plan.leavesAt)) await take(player, step)
    if (plan.leaves === 'done') await finish(player)
    else await leave(socket, plan.leaves)
  } catch (cause) {
    throw new Error(`${cause instanceof Error ? cause.message : cause}\n${describe(plan)}`, { cause })
  } finally {
    socket.terminate()
  }
}

const take = async (player: Player, step: Step): Promise<void> => {
  const { socket, judge } = player
  if (step.kind === 'notice') socket.send({ type: step.type })
  else {
    player.asked++
    const previous = step.kind === 'create' ? PREVIOUS[step.chain](judge) : null
    if (step.kind === 'bad') socket.send(step.data)
    else socket.send(previous === null ? step.frame : { ...step.frame, previous_response_id: previous })
  }
  await wait(player, step.waitFor)
}

const PREVIOUS: Record<Extract<Step, { kind: 'create' }>['chain'], (judge: TurnChecker) => string | null> = {
  none: () => null,
  last: ({ lastId }) => lastId,
  unknown: () => 'resp_nobody_knows',
}

const wait = async (player: Player, waitFor: Wait): Promise<void> => {
  const { socket, judge } = player
  if (waitFor === 'moment') await Bun.sleep(MOMENT_MS)
  else if (waitFor === 'event' && judge.ends < player.asked) judge.see(await socket.next())
  else if (waitFor === 'ends') while (judge.ends < player.asked) judge.see(await socket.next())
}

/** What came before the answer to a ping is all that comes. */
const finish = async (player: Player): Promise<void> => {
  const { socket, judge } = player
  await wait(player, 'ends')
  await socket.ping()
  await socket.ping() // a late second end would have arrived
  let seen = 0
  for (const judgeAll = createTurnChecker(); seen < socket.events.length; seen++) judgeAll.see(socket.events[seen]!) // below the length
  const ends = socket.events.filter(({ type }) => ENDS.has(type)).length
  if (ends !== player.asked || judge.ends !== ends) throw new Error(`${player.asked} frames had ${ends} ends`)
  if (!socket.isOpen) throw new Error('the socket did not outlive its frames')
}

const ENDS = new Set(['response.completed', 'response.failed', 'response.incomplete', 'error'])

const leave = async (socket: TestSocket, how: Exclude<Plan['leaves'], 'done'>): Promise<void> => {
  if (how === 'stops reading') {
    socket.pause()
    await Bun.sleep(MOMENT_MS)
  }
  if (how === 'closes') socket.close(1000)
  else socket.terminate()
}

const describe = (plan: Plan): string =>
  JSON.stringify(plan, (_, value) =>
    typeof value === 'string' && value.length > 200 ? `${value.length} characters` : value,
  ).slice(0, 6000)
