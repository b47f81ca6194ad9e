/** Sends one e-mail to the target in its first argument, and prints the error or `null`. Names resolve to 127.0.0.1. */
import { systemClock as clock } from '../../src/lib/clock.ts'
import { systemRandom as random } from '../../src/lib/random.ts'
import { toTarget } from '../../src/model/alerts/channel-input.ts'
import { sendAlert } from '../../src/upstream/alerts/send.ts'
import { createDial } from '../../src/upstream/dial.ts'
import { GuardedFetch } from '../../src/upstream/guarded-fetch.ts'

const guardedFetch = new GuardedFetch({
  dial: createDial({}, fetch, { trustsSocketEnvironment: false, random }),
  lookup: async () => ['127.0.0.1'],
  own: () => ({ port: 1, publicUrl: undefined }),
})
const target = toTarget('smtp', JSON.parse(process.argv[2] ?? ''))
const sent = await sendAlert(
  { guardedFetch, clock },
  { target, secret: null, allowPrivateAddress: true },
  {
    id: 'ald_1',
    event: 'account.needs_sign_in',
    edge: 'raised',
    severity: 'bad',
    title: 'Account needs sign-in',
    text: 'a***@example.com needs sign-in.',
    url: null,
    subject: null,
    since: '2026-01-05T10:00:00.000Z',
    at: '2026-01-05T10:01:00.000Z',
    install: 'sluice.example',
  },
)
console.log(JSON.stringify(sent))
process.exit()
