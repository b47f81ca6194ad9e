/** A request on a socket that names an uploaded file uses the account of the file, also when its conversation is elsewhere. */
import { expect, test } from 'bun:test'
import { threadHash } from '../../src/proxy/pool/affinity.ts'
import {
  create,
  createFollowUp,
  expectCompleted,
  expectNothingLeft,
  getRefusal,
  idOf,
  open,
  type SocketWorld,
  startSocketWorld,
} from './ground.ts'

/** The account has a file of a client without a key. */
const give = ({ bindings }: SocketWorld, fileId: string, accountId: string) =>
  bindings.affinity.remember('file', threadHash(fileId, null), accountId, { now: bindings.clock.now(), mixed: false })

const naming = (...ids: string[]) => ({
  input: [{ type: 'message', role: 'user', content: ids.map((file_id) => ({ type: 'input_file', file_id })) }],
})

test('a request that continues a response elsewhere is requested in full, and then served by the account of the file', async () => {
  await using service = await startSocketWorld({ accounts: 2 })
  const socket = await open(service, { headers: { 'session-id': 'thread-1' } })
  const first = await socket.turn(create('one'))
  expectCompleted(first)
  const owner = (await service.rows())[0]?.accountId
  const other = service.members.find(({ id }) => id !== owner)!.id
  give(service, 'file-1', other)
  const [, code] = getRefusal(await socket.turn(createFollowUp(idOf(first), 'read', naming('file-1'))))
  expect(code).toBe('previous_response_not_found')
  expectCompleted(await socket.turn(create('read', naming('file-1'))))
  expect((await service.rows()).at(-1)?.accountId).toBe(other)
  socket.close()
  await expectNothingLeft(service)
})

test('files of two accounts are rejected, and the socket stays open', async () => {
  await using service = await startSocketWorld({ accounts: 2 })
  for (const [index, { id }] of service.members.entries()) give(service, `file-${index}`, id)
  const socket = await open(service)
  expect(getRefusal(await socket.turn(create('read', naming('file-0', 'file-1'))))).toEqual([
    502,
    'continuity_owner_conflict',
  ])
  expect(getRefusal(await socket.turn(create('read', naming('file-0', 'file-x'))))).toEqual([
    502,
    'file_owner_unavailable',
  ])
  expectCompleted(await socket.turn(create('read', naming('file-1'))))
  expect((await service.rows()).at(-1)?.accountId).toBe(service.members[1]!.id)
  socket.close()
  await expectNothingLeft(service)
})
