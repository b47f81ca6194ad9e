/** A client for chaos tests: turn after turn on one socket, reconnecting when cut off, and over HTTP after a 426. */
import { parseEvents } from '../support/app.ts'
import { connectSocket, endsTurn, SocketRefused, type TestSocket } from '../support/socket-client.ts'
import type { KillableClient } from './chaos-kills.ts'
import { type Random, randomUpTo } from './fuzz-plan.ts'
import { create, NATIVE } from './ground.ts'
import { createTurnChecker, type Trial, type TurnChecker } from './trial.ts'

export interface Tally {
  completed: number
  /** Ended by an event or frame that says why. */
  failed: number
  overHttp: number
  /** Sockets the client itself lost to a kill. */
  cut: number
}

/** Runs until `isOver`. Rejects when a turn that was not cut off here had no end, or more than one. */
export const live = async (
  { service, authorization }: Trial,
  { random, victim, tally, isOver }: { random: Random; victim: KillableClient; tally: Tally; isOver: () => boolean },
): Promise<void> => {
  while (!isOver()) {
    const socket = await connect(service.socketUrl, authorization)
    if (!socket) {
      await overHttp(service.url, authorization, tally)
      continue
    }
    let wasCut = false
    victim.cut = (how) => {
      wasCut = true
      if (how === 'closes') socket.close(1000)
      else socket.terminate()
    }
    try {
      await turns(socket, { random, tally, isOver })
    } catch (err) {
      if (!wasCut) throw err
      tally.cut++
    } finally {
      victim.cut = null
      socket.terminate()
    }
  }
}

/** Null if the client gets a 426 and must use HTTP. */
const connect = async (url: string, authorization: string): Promise<TestSocket | null> => {
  try {
    return await connectSocket(url + NATIVE, { headers: { authorization } })
  } catch (err) {
    if (err instanceof SocketRefused && err.status === 426) return null
    throw err
  }
}

/** Some in full, some on top of the last, as long as there is one to build on. */
const turns = async (
  socket: TestSocket,
  { random, tally, isOver }: { random: Random; tally: Tally; isOver: () => boolean },
): Promise<void> => {
  const judge = createTurnChecker()
  for (let left = 1 + randomUpTo(random, 20); left > 0 && !isOver(); left--) {
    const previous = random() < 0.6 ? judge.lastId : null
    socket.send(create(`text ${left}`, { ...(previous && { previous_response_id: previous }) }))
    if (await readTurn(socket, judge)) tally.completed++
    else tally.failed++
  }
}

/** Whether the turn was completed. */
const readTurn = async (socket: TestSocket, judge: TurnChecker): Promise<boolean> => {
  for (;;) {
    const event = await socket.next()
    judge.see(event)
    if (endsTurn(event)) return event.type === 'response.completed'
  }
}

const overHttp = async (url: string, authorization: string, tally: Tally): Promise<void> => {
  const { type: _, ...body } = create('over HTTP')
  const headers = { authorization, 'content-type': 'application/json', 'user-agent': 'codex_exec/0.169.0 (chaos)' }
  const response = await fetch(url + NATIVE, { method: 'POST', headers, body: JSON.stringify(body) })
  const text = await response.text()
  tally.overHttp++
  if (response.status !== 200) return
  const ends = parseEvents(text).filter(endsTurn)
  if (ends.length !== 1) throw new Error(`a turn over HTTP had ${ends.length} ends: …${text.slice(-400)}`)
}
