/** Turns the steps of a response into socket output: every event is one text frame. */
import { isTerminal } from './events.ts'
import type { Planned } from './plan.ts'
import type { Json } from './script.ts'

export type Outgoing =
  /** Frames to write together; `terminal` is the response in the terminal event that ends them. */
  | { kind: 'frames'; texts: string[]; events: number; terminal: Json | null }
  | Exclude<Planned, { kind: 'event' | 'garbage' }>

/** Joins up to `perChunk` events to one write; a terminal event and anything that is not text flushes it. */
export function* getFrames(steps: Iterable<Planned>, perChunk: number): Generator<Outgoing> {
  let texts: string[] = []
  let events = 0
  const flush = (terminal: Json | null = null): Outgoing => {
    const frames: Outgoing = { kind: 'frames', texts, events, terminal }
    texts = []
    events = 0
    return frames
  }
  for (const step of steps) {
    if (step.kind === 'garbage') texts.push(step.text)
    else if (step.kind === 'event') {
      texts.push(JSON.stringify(step.event))
      events += 1
      if (isTerminal(step.event))
        yield flush(step.event.response as Json) // as: every terminal event has one
      else if (events >= perChunk) yield flush()
    } else {
      if (texts.length > 0) yield flush()
      yield step
    }
  }
  if (texts.length > 0) yield flush()
}
