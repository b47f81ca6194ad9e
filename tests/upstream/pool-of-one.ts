/** Credentials of stand-in accounts in a separate database, with what they need to call the upstream. */
import { commit, onChange } from '../../db/commit.ts'
import { createLog } from '../../src/lib/log.ts'
import { seededRandom } from '../../src/lib/random.ts'
import { createSealer } from '../../src/lib/seal.ts'
import { importAccount } from '../../src/model/accounts/account-intake.ts'
import { openTokens } from '../../src/model/accounts/account-tokens.ts'
import { getAccount } from '../../src/model/accounts/accounts.ts'
import { parseAuthJson } from '../../src/model/accounts/auth-json.ts'
import { AS_ENVIRONMENT } from '../../src/model/egress/route.ts'
import { Credentials } from '../../src/upstream/credentials.ts'
import { createDial } from '../../src/upstream/dial.ts'
import { ManualClock } from '../support/clock.ts'
import { testDb } from '../support/db.ts'
import type { AccountOptions } from '../support/upstream/accounts.ts'
import { createUpstream, type Upstream } from '../support/upstream/app.ts'

const ORIGIN = 'http://upstream.test'

/** `over.fetch` is between the code and the upstream. */
export const poolOfOne = async (
  options: AccountOptions = {},
  over: { fetch?: (upstream: Upstream) => Upstream['fetch'] } = {},
) => {
  const clock = new ManualClock()
  const upstream = createUpstream({ now: () => clock.now(), sleep: (ms, signal) => clock.sleep(ms, signal) })
  const sim = upstream.addAccount(options)
  const { db, sqlite } = testDb()
  const random = seededRandom(5)
  const sealer = createSealer(random.bytes(32), random)
  const actor = { id: 'test', method: null, address: null, at: clock.now() }
  const { id } = await commit(db, (tx) =>
    importAccount(tx, parseAuthJson(sim.authJson(), 'a'), { sealer, random, actor }),
  )
  const dial = createDial({}, (over.fetch?.(upstream) ?? upstream.fetch) as typeof fetch, {
    trustsSocketEnvironment: true,
    random,
  })
  const failures: { id: string; code: string }[] = []
  const log = createLog({ level: 'error', format: 'text', now: () => 0, write: () => {} })
  const limits: AbortController[] = []
  let isLockedElsewhere = false
  const locks: string[] = []
  const deps = {
    db,
    sealer,
    clock,
    log,
    oauth: {
      dial,
      authBaseUrl: ORIGIN,
      timeout: () => {
        const limit = new AbortController()
        limits.push(limit)
        return limit.signal
      },
    },
    getRoute: () => AS_ENVIRONMENT,
    lock: async (accountId: string) => {
      if (isLockedElsewhere) return null
      locks.push(accountId)
      return { release: () => void locks.splice(locks.indexOf(accountId), 1) }
    },
    onPermanentFailure: (accountId: string, code: string) => failures.push({ id: accountId, code }),
    onRenewed: () => {},
  }
  const credentials = await Credentials.open(deps)
  onChange(db, () => credentials.reload())
  return {
    clock,
    upstream,
    sim,
    db,
    sqlite,
    sealer,
    log,
    id,
    credentials,
    failures,
    /** The credentials of another process, which learns of changes only when it reads the row. */
    another: (own: { node?: number } = {}) => Credentials.open({ ...deps, ...own }),
    /** Whether another process holds the lock of every account. */
    lockElsewhere: (isLocked: boolean) => {
      isLockedElsewhere = isLocked
    },
    /** Accounts whose lock is held. */
    locks,
    /** Lets the time limit of the refresh under way pass. */
    timeOut: () => limits.at(-1)?.abort(new DOMException('late', 'TimeoutError')),
    deps: { dial, baseUrl: `${ORIGIN}/backend-api`, clock, credentials },
    stored: async () => openTokens(sealer, await getAccount(db, id)),
    refreshes: () => upstream.requests.filter(({ path }) => path === '/oauth/token').length,
  }
}

/** The rejection of the promise. */
export const rejection = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => {
      throw new Error('It was fulfilled.')
    },
    (err: unknown) => err,
  )
