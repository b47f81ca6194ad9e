/** Raw bytes on a TCP connection, which no client library would send. */

interface RawOptions {
  /** Ends our side after the last byte, as a client that dies does. */
  hangUp?: boolean
  /** How long to wait for the other side to close; what came until then is the answer. */
  waitMs?: number
  /** Called with each read, and returns whether enough has arrived. */
  until?: (answer: string) => boolean
}

/** Sends the pieces one after the other, each when the one before is out, and returns all that came back. */
export const sendRaw = async (
  port: number,
  pieces: readonly (string | Uint8Array)[],
  { hangUp = false, waitMs = 2000, until = () => false }: RawOptions = {},
): Promise<string> => {
  let answer = ''
  const over = Promise.withResolvers<void>()
  let drained = Promise.withResolvers<void>()
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: {
      data: (_, bytes) => {
        answer += bytes.toString('latin1')
        if (until(answer)) over.resolve()
      },
      drain: () => drained.resolve(),
      close: () => over.resolve(),
      error: () => over.resolve(),
    },
  })
  const write = async () => {
    for (const piece of pieces) {
      let rest = typeof piece === 'string' ? Buffer.from(piece, 'latin1') : piece
      while (rest.length > 0) {
        drained = Promise.withResolvers<void>()
        const written = socket.write(rest)
        if (written < 0) return
        rest = rest.subarray(written)
        if (rest.length > 0) await Promise.race([drained.promise, over.promise])
      }
    }
    socket.flush()
    if (hangUp) socket.end()
  }
  await Promise.race([write().then(() => over.promise), over.promise, Bun.sleep(waitMs)])
  socket.terminate()
  return answer
}

/** Status of each response in the answer. */
export const getStatuses = (answer: string): number[] =>
  [...answer.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status))

/** `{"error":{…}}` of the last response. */
export const getError = (answer: string): { code: string; type?: string } => {
  const found = /\{"error":.*\}/s.exec(answer)
  if (!found) throw new Error(`There is no error envelope in: ${answer.slice(0, 500)}`)
  return (JSON.parse(found[0]) as { error: { code: string; type?: string } }).error
}
