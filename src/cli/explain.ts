/** `sluice explain`: which account a request with this model and key would use, and why not the others. */

import type { Db } from '../../db/commit.ts'
import { systemClock } from '../lib/clock.ts'
import { createLog } from '../lib/log.ts'
import { systemRandom } from '../lib/random.ts'
import { accountNames } from '../model/accounts/account-names.ts'
import { Catalog } from '../model/catalog/catalog.ts'
import { listPools } from '../model/egress/endpoints.ts'
import type { EgressReason } from '../model/egress/route.ts'
import { getUnroutedReason } from '../model/egress/unrouted.ts'
import { KeyRing } from '../model/keys/key-ring.ts'
import { type CandidateView, type Explanation, explain } from '../model/log/explain.ts'
import { ASSUMED_RATES } from '../model/log/request-units.ts'
import { Pool } from '../proxy/pool/pool.ts'
import type { Settings } from '../settings/schema.ts'
import { readSettings } from '../settings/store.ts'
import { printJson, type Run, withFolder } from './command.ts'
import { findOne } from './find.ts'
import { KEY } from './keys.ts'
import { shortTime, table } from './table.ts'

interface ExplainOptions {
  model?: string
  key?: string
  json?: true
}

/** Exit code 1 when no account would be used. */
export const explainChoice: Run<ExplainOptions> = (io, _args, { model = null, key, json }) =>
  withFolder(io, async ({ db }) => {
    const settings = (await readSettings(db)).values
    const stored = key === undefined ? null : findOne(KEY, await KEY.all(db), key)
    const explanation = explain(await storedPool(db, settings), {
      model,
      key: stored && (await KeyRing.open(db)).byHash(stored.keyHash),
      settings,
      names: await accountNames(db, { hidesAccounts: false }),
      now: systemClock.now(),
    })
    if (json) printJson(io, explanation)
    else io.stdout(inWords(explanation))
    if (!json) io.stderr(NOTE)
    return explanation.outcome === 'chosen' ? 0 : 1
  })

const NOTE =
  'This uses only the database. The routing simulator in the dashboard also knows running requests and short cool-downs.\n'

/** The pool from the database. It only explains and never writes. */
const storedPool = async (db: Db, settings: Settings): Promise<Pool> => {
  const catalog = await Catalog.open(db)
  const unrouted = new Map<string | null, EgressReason | null>([[null, await getUnroutedReason(db, null)]])
  for (const { id } of await listPools(db)) unrouted.set(id, await getUnroutedReason(db, id))
  return Pool.open({
    db,
    clock: systemClock,
    log: createLog({ level: 'error', format: 'text', now: systemClock.now, write: () => {} }),
    random: () => systemRandom.float(),
    settings: () => settings,
    getModels: (id) => catalog.getModels(id),
    saveUsage: () => {},
    whyNoRoute: (poolId) => {
      const reason = unrouted.get(poolId) ?? null
      return reason && { reason, until: null }
    },
    rates: () => ASSUMED_RATES, // only moves have prices
  })
}

const inWords = ({ sentence, chosen, candidates }: Explanation): string => {
  const first = chosen === null ? sentence : `${chosen.accountName ?? chosen.accountId} would be used.`
  const rows = candidates.map((candidate) => getRow(candidate, chosen?.accountId ?? null))
  return `${first}\n${rows.length === 0 ? '' : `\n${table(['ACCOUNT', 'RESULT', 'REASON', 'UNTIL'], rows)}`}`
}

const getRow = ({ accountId, accountName, reason, until }: CandidateView, chosenId: string | null): string[] => [
  accountName ?? accountId,
  accountId === chosenId ? 'used' : reason === null ? 'available' : 'skipped',
  reason ?? '-',
  shortTime(until === null ? null : Date.parse(until)),
]
