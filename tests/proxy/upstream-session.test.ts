/** The upstream socket kept for a client: for one account, one turn at a time, and until the client disconnects. */
import { expect, test } from 'bun:test'
import { AS_ENVIRONMENT } from '../../src/model/egress/route.ts'
import { type Connection, UpstreamSession } from '../../src/proxy/exchange/upstream-session.ts'

const connectionTo = (accountId: string) => {
  const socket = {
    isOpen: true,
    openedAt: 0,
    close: () => {
      socket.isOpen = false
    },
  }
  return { socket, accountId, accessToken: 'at', route: AS_ENVIRONMENT } as unknown as Connection // as: the members of a socket used here
}

test('a connection to another account is closed when a turn uses a different one', () => {
  const session = new UpstreamSession()
  const connection = connectionTo('acc_1')
  session.keep(connection)
  expect(session.take({ id: 'acc_2', route: AS_ENVIRONMENT }, 1)).toBeNull()
  expect([connection.socket.isOpen, session.accountAt(1)]).toEqual([false, null])
})

test('a connection in use is not closed before it is returned', () => {
  const session = new UpstreamSession()
  const connection = connectionTo('acc_1')
  session.keep(connection)
  expect(session.take({ id: 'acc_1', route: AS_ENVIRONMENT }, 1)).toBe(connection)
  session.keepOnly(() => false)
  expect(connection.socket.isOpen).toBe(true)
})

test('a connection returned after the client disconnected is closed', () => {
  const session = new UpstreamSession()
  const connection = connectionTo('acc_1')
  session.end()
  session.keep(connection)
  expect([connection.socket.isOpen, session.accountAt(1)]).toEqual([false, null])
})
