/** Plays the steps of a response as a pull-based SSE body: nothing is created before the reader requests it. */
import { isTerminal, sseText } from './events.ts'
import type { Step } from './plan.ts'
import { resetError } from './refusal.ts'

/** Resolves after `ms`, or early when the signal aborts. */
export type Sleep = (ms: number, signal?: AbortSignal) => Promise<void>

/** `finished`: taken up to its planned end; `aborted`: the reader left; `severed`: broken on purpose. */
type StreamEnd = 'finished' | 'aborted' | 'severed'

type StreamOptions = {
  /** Aborts when the client disconnects; the body then fails with the reason, as a real one does. */
  signal: AbortSignal
  sleep: Sleep
  /** Events per write. */
  perChunk: number
  /** Bun.serve resets the connection whatever the error is, but prints every error that is not `undefined`. */
  overSocket: boolean
  /** Called with the number of events in each chunk the reader has pulled. */
  onSent: (events: number) => void
  /** Called once. A reader that leaves after the terminal event has finished, as the native client always does. */
  onEnd: (end: StreamEnd) => void
}

type Chunk = { bytes: Uint8Array; events: number; isLast: boolean }

const encoder = new TextEncoder()

export function sseBody(steps: Iterable<Step>, options: StreamOptions): ReadableStream<Uint8Array> {
  const gone = new AbortController()
  const chunks = encodeSteps(steps, options, gone.signal)
  let isComplete = false
  let ahead: ReturnType<typeof chunks.next> | null = null
  const end = (how: StreamEnd) => {
    if (gone.signal.aborted) return
    gone.abort()
    options.onEnd(isComplete ? 'finished' : how)
  }
  const finish = (controller: ReadableStreamDefaultController<Uint8Array>, how: StreamEnd) => {
    if (gone.signal.aborted) return
    end(how)
    if (how === 'severed') controller.error(options.overSocket ? undefined : resetError())
    else controller.close()
  }
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const leave = () => {
          end('aborted')
          controller.error(options.signal.reason)
        }
        options.signal.addEventListener('abort', leave, { once: true })
        gone.signal.addEventListener('abort', () => options.signal.removeEventListener('abort', leave))
        if (options.signal.aborted) leave()
      },
      async pull(controller) {
        const next = await (ahead ?? chunks.next())
        ahead = null
        if (gone.signal.aborted) return
        if (next.done) return finish(controller, next.value)
        const { bytes, events, isLast } = next.value
        isComplete ||= isLast
        options.onSent(events)
        controller.enqueue(bytes)
        if (!isLast) return
        // A server ends its response by itself, whether or not the client continues reading.
        ahead = chunks.next()
        void ahead.then(({ done, value }) => {
          if (done) finish(controller, value)
        })
      },
      cancel: () => end('aborted'),
    },
    { highWaterMark: 0 },
  )
}

/** Encodes once what many readers will get; waits stay waits. */
export function precompute(steps: Iterable<Step>, perChunk: number): Step[] {
  const done: Step[] = []
  for (const part of gather(steps, perChunk)) {
    done.push('text' in part ? { kind: 'bytes', ...encode(part) } : part)
  }
  return done
}

async function* encodeSteps(
  steps: Iterable<Step>,
  { sleep, perChunk }: StreamOptions,
  gone: AbortSignal,
): AsyncGenerator<Chunk, StreamEnd> {
  for (const part of gather(steps, perChunk)) {
    if ('text' in part) yield encode(part)
    else if (part.kind === 'bytes') yield part
    else if (part.kind === 'wait') await sleep(part.ms, gone)
    else if (part.kind === 'hang') await new Promise<never>(() => {})
    else if (part.kind === 'close') return 'finished'
    else if (part.kind === 'sever') return 'severed'
  }
  return 'finished'
}

type Text = { text: string; events: number; isLast: boolean }

function encode({ text, ...about }: Text): Chunk {
  return { bytes: encoder.encode(text), ...about }
}

type Gathered = Text | Exclude<Step, { kind: 'event' | 'garbage' }>

/** Joins up to `perChunk` events to one text; a terminal event and anything that is not text flushes it. */
function* gather(steps: Iterable<Step>, perChunk: number): Generator<Gathered> {
  let text = ''
  let events = 0
  for (const step of steps) {
    if (step.kind === 'event') {
      text += sseText(step.event)
      events += 1
      const isLast = isTerminal(step.event) || step.event.type === 'error'
      if (events < perChunk && !isLast) continue
      yield { text, events, isLast }
    } else if (step.kind === 'garbage') {
      text += step.text
      continue
    } else {
      if (text !== '') yield { text, events, isLast: false }
      yield step
    }
    text = ''
    events = 0
  }
  if (text !== '') yield { text, events, isLast: false }
}
