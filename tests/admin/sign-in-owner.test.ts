/** A sign-in belongs to the user who began it: others can't see, finish or cancel it. */
import { expect, test } from 'bun:test'
import type { SignInValue } from '../../views/accounts/new-frame.tsx'
import { problem } from '../support/people.ts'
import { signInWorld } from '../support/sign-ins.ts'

const NOT_FOUND: [number, string] = [404, 'oauth_flow_not_found']

test.each(['browser', 'device'])('others find no sign-in of another user (%s)', async (forceMethod) => {
  const { start, as } = await signInWorld()
  const { flowId } = await start({ forceMethod })
  const bob = await as('operator')
  for (const ask of [
    () => bob.ask('GET /api/oauth/status'),
    () => bob.ask(`GET /api/oauth/status?flowId=${flowId}`),
    () => bob.ask('POST /api/oauth/complete', { json: { flowId } }),
    () => bob.ask('POST /api/oauth/complete', { json: { deviceAuthId: flowId } }),
    () => bob.ask('POST /api/oauth/cancel', { json: { flowId } }),
    () => bob.ask(`GET /accounts/new/${forceMethod}?flow=${flowId}`),
    () => bob.ask(`GET /accounts/new/${forceMethod}?flow=${flowId}&waiting=1`),
  ])
    expect(await problem(await ask())).toEqual(NOT_FOUND)
})

test('others cannot finish it for the user who began it', async () => {
  const { start, as, approve, app, emails, status, events } = await signInWorld()
  const flow = await start()
  const callbackUrl = approve(flow, app.upstream.addAccount({ email: 'bob@example.test' }))
  const answer = await (await as('operator')).ask('POST /api/oauth/manual-callback', { json: { callbackUrl } })
  expect(await problem(answer)).toEqual([400, 'invalid_callback'])
  expect([emails(), (await status()).status]).toEqual([[], 'pending'])
  expect((await events()).map(({ event }) => event)).toEqual(['account_sign_in_started'])
})

test('a user can cancel only their own sign-in, and finds it without its id', async () => {
  const { start, status, as } = await signInWorld()
  const bob = await as('operator')
  const mine = await start({ forceMethod: 'device' })
  const theirs = await bob.ask('POST /api/oauth/start', { json: { forceMethod: 'device' } })
  expect(theirs.status).toBe(200)
  expect(await status()).toMatchObject({ flowId: mine.flowId, status: 'pending' })
  const seen = (await (await bob.ask('GET /api/oauth/status')).json()) as SignInValue // as: its id
  expect(seen.flowId).not.toBe(mine.flowId)
  await start({ forceMethod: 'device' })
  expect(await status(mine.flowId)).toMatchObject({ status: 'error' })
})
