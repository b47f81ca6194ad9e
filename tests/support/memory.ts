/** What a process holds of the database in memory, as plain values to compare with another process. */
import type { Db } from '../../db/commit.ts'
import { affinity } from '../../db/schema/accounts.ts'
import { egressPools } from '../../db/schema/egress.ts'
import { apiKeys, firewallEntries } from '../../db/schema/keys.ts'
import type { Bindings } from '../../src/boot/bindings.ts'
import { PRESETS } from '../../src/model/users/permissions.ts'

type Names = Awaited<ReturnType<typeof readNames>>

/** What can be looked up. Read before and after a change, which may create or delete some of it. */
export const readNames = async (db: Db) => ({
  owners: await db.select({ kind: affinity.kind, keyHash: affinity.keyHash }).from(affinity).all(),
  keys: (await db.select().from(apiKeys).all()).map(({ keyHash }) => keyHash),
  addresses: (await db.select().from(firewallEntries).all()).map(({ ipAddress }) => ipAddress),
  pools: [null, ...(await db.select().from(egressPools).all()).map(({ id }) => id)],
})

export const readMemory = (bindings: Bindings, names: Names): unknown =>
  JSON.parse(JSON.stringify(collect(bindings, names), (_, value) => (value instanceof Set ? [...value] : value)))

const collect = (bindings: Bindings, names: Names) => ({
  settings: bindings.settings.current(),
  keys: names.keys.map((hash) => bindings.keys.byHash(hash)),
  firewall: ['192.0.2.77', ...names.addresses].map((address) => [address, bindings.firewall.allows(address)]),
  accounts: bindings.pool.describe(),
  rows: bindings.pool.all().map(({ row }) => row),
  models: [bindings.catalog.native(null), bindings.catalog.public(), bindings.catalog.anthropic()].map(
    ({ etag }) => etag,
  ),
  sources: bindings.sources.enabled,
  egress: names.pools.map((id) => [id, bindings.egress.of(id).kind, bindings.egress.whyClosed(id)]),
  alerts: bindings.alerts.for(PRESETS.admin),
  shares: bindings.shares.describe(),
  owners: names.owners.map(({ kind, keyHash }) => bindings.affinity.get(kind, keyHash, 0, Number.POSITIVE_INFINITY)),
})
