/** Turns on a socket: batches, the terminal event, what breaks one, and what the socket does in between. */
import { describe, expect, test } from 'bun:test'
import { AppError } from '../../src/errors.ts'
import { until } from '../support/until.ts'
import { acceptance, COMPLETED, collectTexts, connectTo, DELTA, rest, startPeer, startRaw } from './socket-peer.ts'

const RATE_LIMITS = '{"type":"codex.rate_limits"}'

test('two turns follow each other on one socket, each up to its terminal event', async () => {
  await using peer = startPeer((client, text) => {
    for (const frame of [DELTA, `{"type":"response.completed","n":${text}}`]) client.send(frame)
  })
  const socket = await connectTo(peer.url)
  const ends: boolean[] = []
  for (const n of ['1', '2']) {
    const stream = socket.turn(n, (isClean) => ends.push(isClean))
    expect(await rest(stream)).toEqual([DELTA, `{"type":"response.completed","n":${n}}`])
    stream.drain()
    stream.cancel() // after the end it takes nothing down
    expect(await stream.read()).toBeNull()
  }
  expect(ends).toEqual([true, true])
  expect(socket.isOpen).toBe(true)
  expect(peer.seen.handshakes).toHaveLength(1)
  socket.terminate()
})

test('bytes are sent as a text frame', async () => {
  await using peer = startPeer((client) => client.send(COMPLETED))
  const socket = await connectTo(peer.url)
  await rest(socket.turn(new TextEncoder().encode('{"a":"ü"}')))
  expect(peer.seen.frames).toEqual(['{"a":"ü"}'])
  socket.terminate()
})

for (const type of ['response.completed', 'response.incomplete', 'response.failed', 'error']) {
  test(`${type} ends a turn; later events are ignored`, async () => {
    await using peer = startPeer((client, text) => {
      client.send(`{"type":"${type}","of":${text}}`)
      client.send(DELTA)
      client.send(RATE_LIMITS)
    })
    const socket = await connectTo(peer.url)
    expect(await rest(socket.turn('1'))).toEqual([`{"type":"${type}","of":1}`])
    await Bun.sleep(2) // for the late frames of the first turn to come
    expect(await rest(socket.turn('2'))).toEqual([`{"type":"${type}","of":2}`])
    socket.terminate()
  })
}

test('the next turn can begin as soon as the terminal event came, before it is read', async () => {
  await using peer = startPeer((client, text) => client.send(`{"type":"response.completed","n":${text}}`))
  const socket = await connectTo(peer.url)
  const first = socket.turn('1', () => {
    second = socket.turn('2')
  })
  let second = first
  expect(() => socket.turn('3')).toThrow('already running')
  await until(() => second !== first)
  expect(await rest(second)).toEqual(['{"type":"response.completed","n":2}'])
  expect(await rest(first)).toEqual(['{"type":"response.completed","n":1}'])
  expect(peer.seen.frames).toEqual(['1', '2'])
  socket.terminate()
})

test('frames that arrived together are one batch', async () => {
  await using peer = startPeer((client) => {
    for (let i = 0; i < 500; i++) client.send(DELTA)
    client.send(COMPLETED)
  })
  const socket = await connectTo(peer.url)
  let isOver = false
  const stream = socket.turn('x', () => {
    isOver = true
  })
  await until(() => isOver)
  const batch = await stream.read()
  expect(batch).toHaveLength(501)
  expect(batch?.at(-1)?.type).toBe('response.completed')
  expect(await stream.read()).toBeNull()
  socket.terminate()
})

test('frames with no turn running are dropped', async () => {
  await using peer = startPeer((client) => client.send(COMPLETED))
  const socket = await connectTo(peer.url)
  peer.clients[0]!.send(RATE_LIMITS)
  peer.clients[0]!.send(DELTA)
  await Bun.sleep(2)
  expect(await rest(socket.turn('x'))).toEqual([COMPLETED])
  socket.terminate()
})

test('a frame can be sent beside the turn', async () => {
  await using peer = startPeer((client, text) => {
    if (text === 'interrupt') client.send('{"type":"response.incomplete"}')
  })
  const socket = await connectTo(peer.url)
  const stream = socket.turn('create')
  socket.send('interrupt')
  expect(await rest(stream)).toEqual(['{"type":"response.incomplete"}'])
  expect(peer.seen.frames).toEqual(['create', 'interrupt'])
  socket.terminate()
})

describe('a socket that closes in the middle of a turn', () => {
  for (const code of [1000, 1001, 1008, 1009, 1011, 1012, 1013, 4000]) {
    for (const frames of [[], [DELTA, DELTA]]) {
      test(`by a close ${code} after ${frames.length} events rejects after them and says so`, async () => {
        await using peer = startPeer((client) => {
          for (const frame of frames) client.send(frame)
          client.close(code, 'bye')
        })
        const socket = await connectTo(peer.url)
        const ends: boolean[] = []
        const { texts, error } = await collectTexts(socket.turn('x', (isClean) => ends.push(isClean)))
        expect(texts).toEqual(frames)
        const isAboutTheAccount = ![1001, 1009, 1012, 1013].includes(code)
        expect(error).toMatchObject({
          code: isAboutTheAccount ? 'stream_incomplete' : 'socket_closed',
          message: expect.stringContaining(`code ${code} `),
        })
        expect(ends).toEqual([false])
        expect(socket.isOpen).toBe(false)
      })
    }
  }

  test('by a drop rejects after the received events: the connection was lost', async () => {
    await using peer = startPeer((client) => {
      client.send(DELTA)
      setImmediate(() => client.terminate())
    })
    const socket = await connectTo(peer.url)
    const ends: boolean[] = []
    const stream = socket.turn('x', (isClean) => ends.push(isClean))
    expect((await stream.read())?.map(({ data }) => data)).toEqual([DELTA])
    expect(await stream.read().catch((err) => err)).toMatchObject({ code: 'ECONNRESET' })
    expect(ends).toEqual([false])
  })

  for (const code of [1000, 1001, 1011])
    test(`by a close ${code} and served before: is lost before this turn has events, and ends it afterwards`, async () => {
      await using peer = startPeer((client, text) => {
        if (text === 'serve') client.send(COMPLETED)
        if (text === 'begin') client.send(DELTA)
        if (text !== 'serve') client.close(code)
      })
      const kept = async () => {
        const socket = await connectTo(peer.url)
        await rest(socket.turn('serve'))
        return socket
      }
      expect(await rest((await kept()).turn('go')).catch((err) => err)).toMatchObject({ code: 'ECONNRESET' })
      const { texts, error } = await collectTexts((await kept()).turn('begin'))
      expect([texts, (error as Error).message]).toEqual([[DELTA], expect.stringContaining(`code ${code} `)])
    })

  test('before anything reads returns the received events, then how it ended', async () => {
    await using peer = startPeer((client) => {
      client.send(DELTA)
      client.close(1011)
    })
    const socket = await connectTo(peer.url)
    const stream = socket.turn('x')
    await until(() => !socket.isOpen)
    expect(await collectTexts(stream)).toMatchObject({ texts: [DELTA], error: { code: 'stream_incomplete' } })
  })

  test('by a binary frame rejects after the received events, and closes the socket', async () => {
    await using peer = startPeer((client) => {
      client.send(DELTA)
      client.send(new Uint8Array([1, 2]))
      client.send(DELTA)
    })
    const socket = await connectTo(peer.url)
    const ends: boolean[] = []
    const stream = socket.turn('x', (isClean) => ends.push(isClean))
    await until(() => ends.length > 0)
    expect((await stream.read())?.map(({ data }) => data)).toEqual([DELTA])
    expect(stream.read()).rejects.toEqual(new AppError('stream_incomplete'))
    expect(stream.read()).rejects.toEqual(new AppError('stream_incomplete'))
    expect(ends).toEqual([false])
    await until(() => peer.seen.closes.length > 0)
  })

  for (const [what, frame] of [
    ['is no UTF-8', [0x81, 1, 0xff]],
    ['is longer than 128 MiB', [0x81, 127, 0, 0, 0, 0, 8, 0, 0, 1]],
    ['is masked', [0x81, 0x81, 0, 0, 0, 0, 0x41]],
  ] as const) {
    test(`by a frame that ${what} ends it there`, async () => {
      using server = await startRaw((connection, request) => {
        connection.write(acceptance(request))
        connection.once('data', () => connection.write(Buffer.from(frame)))
      })
      const socket = await connectTo(server.url)
      const ends: boolean[] = []
      expect(await rest(socket.turn('x', (isClean) => ends.push(isClean)))).toEqual([])
      expect(ends).toEqual([false])
      await until(() => [...server.connections].every(({ destroyed }) => destroyed))
    })
  }
})

test('cancelling a turn closes the socket and wakes its reader', async () => {
  await using peer = startPeer((client) => client.send(DELTA))
  const socket = await connectTo(peer.url)
  const ends: boolean[] = []
  const stream = socket.turn('x', (isClean) => ends.push(isClean))
  await stream.read()
  const waiting = stream.read()
  stream.cancel()
  expect(ends).toEqual([false])
  expect(socket.isOpen).toBe(false)
  expect(await waiting).toBeNull()
  stream.cancel()
  await until(() => peer.seen.closes.length === 1)
  expect(ends).toEqual([false])
})

test('a cancel with a reason rejects the waiting read, and later ones', async () => {
  await using peer = startPeer()
  const socket = await connectTo(peer.url)
  const stream = socket.turn('x')
  const waiting = stream.read().catch((err) => err)
  const reason = new AppError('upstream_timeout')
  stream.cancel(reason)
  expect(await waiting).toBe(reason)
  expect(stream.read()).rejects.toBe(reason)
})

test('a cancelled turn that was not read returns nothing more', async () => {
  await using peer = startPeer((client) => client.send(COMPLETED))
  const socket = await connectTo(peer.url)
  let isOver = false
  const stream = socket.turn('x', () => {
    isOver = true
  })
  await until(() => isOver)
  stream.cancel()
  expect(await stream.read()).toBeNull()
  expect(socket.isOpen).toBe(true)
  socket.terminate()
})

test('a turn on a closed socket ends immediately', async () => {
  await using peer = startPeer()
  const socket = await connectTo(peer.url)
  for (const isDown of [() => true, () => peer.seen.closes.length > 0]) {
    socket.terminate()
    await until(isDown)
    const ends: boolean[] = []
    expect(await rest(socket.turn('x', (isClean) => ends.push(isClean)))).toEqual([])
    expect(ends).toEqual([false])
  }
  expect(peer.seen.frames).toEqual([])
})
