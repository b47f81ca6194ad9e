/** The memory views, and the commits after which each is read again. */
import type { MemoryView } from '../../db/memory-views.ts'
import type { Connection } from '../proxy/exchange/upstream-session.ts'
import type { Pool } from '../proxy/pool/pool.ts'
import type { Bindings } from './bindings.ts'

/** Writes the ledger before reloading keys, whose rows lack its pending counts. If that fails, memory is right. */
export const getViews = (bindings: Omit<Bindings, 'views'>) => {
  const {
    settings,
    keys,
    keyLeases,
    firewall,
    catalog,
    sources,
    pool,
    affinity,
    ledger,
    proxyDeps,
    sockets,
    responses,
    egress,
  } = bindings
  const hasWrittenLedger = () => {
    ledger.flush()
    return ledger.healthy
  }
  const views: MemoryView[] = [
    {
      name: 'settings',
      topics: ['settings'],
      reload: () => {
        settings.reload()
        responses.sweep()
      },
    },
    {
      name: 'keys',
      topics: ['keys'],
      canReload: hasWrittenLedger,
      reload: () => {
        keys.reload()
        keyLeases.giveBack('excess')
        responses.keepOnly(keys.ids)
      },
    },
    { name: 'leases', topics: ['leases'], reload: () => keyLeases.giveBack() },
    { name: 'firewall', topics: ['firewall'], reload: () => firewall.reload() },
    {
      name: 'egress',
      topics: ['egress', 'settings'],
      reload: () => {
        egress.reload()
        proxyDeps.upstream.dial.keepRoutes(egress.keys())
      },
    },
    { name: 'catalog', topics: ['catalog'], reload: () => catalog.reload() },
    {
      name: 'sources',
      topics: ['sources'],
      reload: () => {
        sources.reload()
        catalog.forgetListings()
      },
    },
    { name: 'credentials', topics: ['accounts'], reload: () => proxyDeps.credentials.reload() },
    { name: 'pool', topics: ['accounts', 'catalog', 'egress'], reload: () => pool.reload() },
    {
      name: 'sockets',
      topics: ['accounts', 'egress', 'settings'],
      reload: () => {
        const isFit = ({ accountId, route }: Connection) =>
          pool.isInUse(accountId) && egress.of(pool.get(accountId)?.egressPoolId ?? null) === route
        for (const { upstream } of sockets) upstream.keepOnly(isFit)
      },
    },
    { name: 'affinity', topics: ['accounts', 'affinity'], reload: () => affinity.keepOnly(getIds(pool)) },
  ]
  return views
}

export const getIds = (pool: Pool): ReadonlySet<string> => new Set(pool.all().map(({ id }) => id))
