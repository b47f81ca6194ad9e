/** Reads the head of an HTTP message from a raw socket and leaves the rest to the next reader. */
import type { Socket } from 'node:net'

interface Head {
  /** Up to the empty line, without it. */
  text: string
  /** Bytes already received after the empty line. */
  rest: Buffer
}

/**
 * Reads one head and leaves `socket` paused. Rejects with the socket's error, or when the peer closes, is silent for
 * `timeoutMs` or sends more than `maxBytes`; the caller closes the socket.
 */
export const readHead = async (socket: Socket, limits: { maxBytes: number; timeoutMs: number }): Promise<Head> => {
  const { promise, resolve, reject } = Promise.withResolvers<Head>()
  let bytes = Buffer.alloc(0)
  const onData = (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk])
    const end = bytes.indexOf('\r\n\r\n')
    if (end !== -1) {
      socket.pause()
      resolve({ text: bytes.toString('latin1', 0, end), rest: bytes.subarray(end + 4) })
    } else if (bytes.length > limits.maxBytes) reject(new Error('what it says has no end'))
  }
  const onTimeout = () => reject(new Error('it did not answer in time'))
  const onClose = () => reject(new Error('it hung up'))
  socket.on('data', onData).on('error', reject).on('end', onClose).on('close', onClose)
  socket.setTimeout(limits.timeoutMs).on('timeout', onTimeout)
  try {
    return await promise
  } finally {
    socket.off('data', onData).off('error', reject).off('end', onClose).off('close', onClose)
    socket.setTimeout(0).off('timeout', onTimeout)
  }
}
