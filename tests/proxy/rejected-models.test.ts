/** A model that every account has rejected: one more attempt, but never on an account that is not available. */
import { describe, expect, test } from 'bun:test'
import { HEALTHY } from '../../src/model/accounts/account-health.ts'
import type { Considered } from '../../src/model/log/skip-reasons.ts'
import { select } from '../../src/proxy/pool/select.ts'
import { aContext, anAccount, limited, NOW, needs, used } from './candidates.ts'

const MODEL = 'gpt-x'
const rejected = (until = NOW + 1_000_000) => new Map([[MODEL, until]])
const PAID = { ...used(0, 100), credits: { hasCredits: true, unlimited: false, balance: 12 } }
const wanted = needs({ model: MODEL })

const skippedIn = ({ considered }: { considered: Considered[] }) => considered.map(({ skipped }) => skipped)

test('the account that rejected it first gets one attempt', () => {
  const accounts = [
    anAccount('a', { rejectedModels: rejected(NOW + 5000) }),
    anAccount('b', { rejectedModels: rejected(NOW + 1000) }),
  ]
  expect(select(accounts, wanted, aContext())).toMatchObject({ kind: 'chosen', id: 'b' })
})

describe('an account is not used for it', () => {
  test.each([
    ['while it is rate limited', { state: limited(NOW + 900_000) }],
    [
      'while it is at its spend cap',
      { state: { ...limited(NOW + 900_000), status: 'quota_exceeded', cause: 'spend_cap_reached' } },
    ],
    ['while it cools down', { health: { ...HEALTHY, backoffUntil: NOW + 20_000 } }],
    ['when it would use paid credits that are off', { usage: PAID }],
  ] as const)('%s', (_when, facts) => {
    const selection = select(
      [anAccount('a', { rejectedModels: rejected(), ...facts })],
      wanted,
      aContext({ paidCredits: 'never' }),
    )
    expect(selection.kind).toBe('none')
    expect(skippedIn(selection)).toEqual(['model_not_supported'])
  })

  test('while another one has included quota', () => {
    const accounts = [
      anAccount('a', { rejectedModels: rejected(NOW + 1000), usage: PAID }),
      anAccount('b', { rejectedModels: rejected(NOW + 5000) }),
    ]
    expect(select(accounts, wanted, aContext({ paidCredits: 'last' }))).toMatchObject({ kind: 'chosen', id: 'b' })
  })
})

test('a pool whose only cooling account is at its cap waits for a free slot', () => {
  const account = anAccount('a', { health: { ...HEALTHY, backoffUntil: NOW + 20_000 }, inFlight: 3 })
  expect(select([account], needs({ streamCap: 3 }), aContext()).kind).toBe('wait')
})
