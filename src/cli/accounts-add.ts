/** `sluice accounts add`: signs in to ChatGPT with a code that is entered in any browser, and adds the account. */
import { commit } from '../../db/commit.ts'
import { systemClock } from '../lib/clock.ts'
import { MINUTE_MS } from '../lib/durations.ts'
import { createLog } from '../lib/log.ts'
import { systemRandom } from '../lib/random.ts'
import { importAccount } from '../model/accounts/account-intake.ts'
import { listAccounts } from '../model/accounts/accounts.ts'
import { noRoute } from '../model/egress/route.ts'
import { EgressRoutes } from '../model/egress/routes.ts'
import { readSettings } from '../settings/store.ts'
import { signedInAccount } from '../upstream/code-exchanges.ts'
import { createDial } from '../upstream/dial.ts'
import { type OAuthCall, type OAuthContext, SignInError } from '../upstream/oauth.ts'
import { type DeviceCode, requestDeviceCode, verificationUrl, waitForGrant } from '../upstream/oauth-device.ts'
import { type CliIo, cliActor, getConfig, type Run, withNewFolder } from './command.ts'

export const addAccount: Run = (io) =>
  withNewFolder(io, async ({ db, sealer }) => {
    const { values: settings } = await readSettings(db)
    const routes = await EgressRoutes.open({ db, sealer, clock: systemClock, log: SILENT, settings: () => settings })
    const route = routes.of(null)
    if (route.kind === 'closed') throw noRoute(route.reason) // before the user signs in for nothing
    const oauth: OAuthCall = { ...getOauth(io), route }
    const device = await requestDeviceCode(oauth, systemClock.now())
    io.stdout(instructions(device, verificationUrl(oauth.authBaseUrl)))
    const account = await signedInAccount(oauth, await getGrant(oauth, device))
    const known = new Set((await listAccounts(db)).map(({ id }) => id))
    const doing = { sealer, random: systemRandom, actor: cliActor(), event: 'account_signed_in' as const }
    const { id, email, planType, status } = await commit(db, (tx) => importAccount(tx, account, doing))
    io.stdout(`${known.has(id) ? 'Signed in again to' : 'Added'} ${email} (${planType}).\n`)
    if (status === 'paused') io.stdout('It is still paused. To use it: sluice accounts resume\n')
    return 0
  })

/** The command says itself what went wrong. */
export const SILENT = createLog({ level: 'error', format: 'text', now: systemClock.now, write: () => {} })

export const getOauth = (io: CliIo): OAuthContext => {
  const config = getConfig(io)
  const dial = createDial(config.raw, io.fetch, {
    trustsSocketEnvironment: config.UPSTREAM_WEBSOCKET_TRUST_ENV,
    random: systemRandom,
  })
  return { dial, authBaseUrl: config.AUTH_BASE_URL, timeout: io.timeout }
}

const instructions = ({ userCode, expiresAt }: DeviceCode, url: string): string => {
  const minutes = Math.round((expiresAt - systemClock.now()) / MINUTE_MS)
  return `Open this page in any browser and sign in to ChatGPT:

  ${url}

Enter this code:

  ${userCode}

The code expires in ${minutes} min. Waiting for you to sign in. Press Ctrl-C to cancel.
`
}

/** Throws `SignInError`, also when the code has expired. */
const getGrant = async (oauth: OAuthCall, device: DeviceCode) => {
  const limit = new AbortController()
  const expired = new SignInError('The code has expired. Run the command again for a new one.')
  const cancel = systemClock.after(device.expiresAt - systemClock.now(), () => limit.abort(expired))
  try {
    return await waitForGrant(oauth, device, { clock: systemClock, signal: limit.signal })
  } finally {
    cancel()
  }
}
