/** Secrets of a pending sign-in: created at its start and stored encrypted in its row. */
import { MINUTE_MS } from '../lib/durations.ts'
import { parseJson } from '../lib/json.ts'
import type { Random } from '../lib/random.ts'
import type { Sealer } from '../lib/seal.ts'
import { type FlowRow, flowContext, getStateHash, type NewFlow } from '../model/accounts/oauth-flows.ts'
import { type BrowserSecret, newBrowserSecret } from './oauth-browser.ts'
import type { DeviceCode } from './oauth-device.ts'

const BROWSER_TTL_MS = 15 * MINUTE_MS

export type FlowBase = Pick<NewFlow, 'id' | 'method' | 'accountId' | 'egressPoolId'>

/** `now` is ms since epoch. */
export const newBrowserFlow = (
  base: FlowBase,
  { sealer, random, now }: { sealer: Sealer; random: Random; now: number },
): NewFlow => {
  const secret = newBrowserSecret(random)
  return {
    ...base,
    stateHash: getStateHash(secret.state),
    secretSealed: sealer.seal(JSON.stringify(secret), flowContext(base.id)),
    userCode: null,
    intervalSeconds: null,
    expiresAt: now + BROWSER_TTL_MS,
  }
}

export const newDeviceFlow = (base: FlowBase, { deviceAuthId, ...code }: DeviceCode, sealer: Sealer): NewFlow => ({
  ...base,
  ...code,
  stateHash: null,
  secretSealed: sealer.seal(deviceAuthId, flowContext(base.id)),
})

export const getBrowserSecret = ({ id, secretSealed }: FlowRow, sealer: Sealer): BrowserSecret =>
  parseJson(sealer.open(secretSealed, flowContext(id))) as BrowserSecret // as: sealed by `newBrowserFlow`

export const getDeviceAuthId = ({ id, secretSealed }: FlowRow, sealer: Sealer): string =>
  sealer.open(secretSealed, flowContext(id))
