/** The memory views, and the commits after which each is read again. */
import type { MemoryView } from '../../db/memory-views.ts'
import type { Connection } from '../proxy/exchange/upstream-session.ts'
import type { Pool } from '../proxy/pool/pool.ts'
import type { Bindings } from './bindings.ts'

/** The ledger is written before keys are read, because their rows lack its pending counts. If that fails, memory is right. */
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
    alerts,
  } = bindings
  const reloadKeys = () =>
    ledger.readWritten(() => {
      const reload = keys.preparedReload()
      return async () => {
        await reload()
        return true
      }
    })
  const views: MemoryView[] = [
    {
      name: 'settings',
      topics: ['settings'],
      reload: async () => {
        await settings.reload()
        responses.sweep()
      },
    },
    {
      name: 'keys',
      topics: ['keys'],
      reload: async () => {
        if (!(await reloadKeys())) return false
        await keyLeases.giveBack('excess')
        responses.keepOnly(keys.ids)
        return true
      },
    },
    { name: 'shares', topics: ['people'], reload: () => bindings.shares.reload() },
    { name: 'leases', topics: ['leases'], reload: () => keyLeases.giveBack() },
    { name: 'alerts', topics: ['alerts'], reload: () => alerts.reload() },
    { name: 'firewall', topics: ['firewall'], reload: () => firewall.reload() },
    {
      name: 'egress',
      topics: ['egress', 'settings'],
      reload: async () => {
        await egress.reload()
        proxyDeps.upstream.dial.keepRoutes(egress.keys())
      },
    },
    { name: 'catalog', topics: ['catalog'], reload: () => catalog.reload() },
    {
      name: 'sources',
      topics: ['sources'],
      reload: async () => {
        await sources.reload()
        catalog.forgetListings()
      },
    },
    { name: 'credentials', topics: ['accounts'], reload: () => proxyDeps.credentials.reload() },
    { name: 'pool', topics: ['accounts', 'catalog', 'egress'], reload: () => pool.reload() },
    {
      name: 'sockets',
      topics: ['accounts', 'egress', 'settings'],
      reload: async () => {
        const isFit = ({ accountId, route }: Connection) =>
          pool.isInUse(accountId) && egress.of(pool.get(accountId)?.egressPoolId ?? null) === route
        for (const { upstream } of sockets) upstream.keepOnly(isFit)
      },
    },
    { name: 'affinity', topics: ['accounts', 'affinity'], reload: async () => affinity.keepOnly(getIds(pool)) },
  ]
  return views
}

export const getIds = (pool: Pool): ReadonlySet<string> => new Set(pool.all().map(({ id }) => id))
