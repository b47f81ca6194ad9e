/** Outbound proxies of imported accounts: recognizes those that are already here, and finds the pool for an account. */
import type { Db, Tx } from '../../../db/commit.ts'
import type { Random } from '../../lib/random.ts'
import type { Actor } from '../audit/audit.ts'
import { type EgressEndpointRow, listEndpoints, listMembers, listPools } from '../egress/endpoints.ts'
import type { NewEndpoint } from '../egress/input.ts'
import { createPool } from '../egress/pools.ts'
import { type Found, foreignId } from './found.ts'

/** Keys of outbound proxies → the endpoint that is the same proxy. */
export type KnownProxies = ReadonlyMap<string, EgressEndpointRow>

/** Returns the endpoint with the same address and user name. */
export const endpointFinder = async (
  db: Db,
): Promise<(endpoint: Pick<NewEndpoint, 'scheme' | 'host' | 'port' | 'username'>) => EgressEndpointRow | undefined> => {
  const rows = new Map((await listEndpoints(db)).map((row) => [getAddress(row), row]))
  return (endpoint) => rows.get(getAddress(endpoint))
}

const getAddress = ({ scheme, host, port, username }: Pick<NewEndpoint, 'scheme' | 'host' | 'port' | 'username'>) =>
  JSON.stringify([scheme, host, port, username])

export const findKnownProxies = async (db: Db, files: readonly Found[]): Promise<KnownProxies> => {
  const find = await endpointFinder(db)
  const pairs = files.flatMap(({ proxies }, source) =>
    proxies.flatMap(({ endpoint, key }): [string, EgressEndpointRow][] => {
      const row = key === null ? undefined : find(endpoint)
      return row ? [[foreignId(source, key ?? ''), row]] : []
    }),
  )
  return new Map(pairs)
}

export interface Routes {
  /** Keys of outbound proxies → the pools made of them. */
  pools: ReadonlyMap<string, string>
  known: KnownProxies
}

/** The pool, or the endpoint that needs one. Null if neither exists, or not any more. */
export const findProxy = async (
  tx: Tx,
  key: string,
  { pools, known }: Routes,
): Promise<{ poolId: string } | { endpoint: EgressEndpointRow } | null> => {
  const poolId = pools.get(key)
  if (poolId !== undefined && (await listPools(tx)).some(({ id }) => id === poolId)) return { poolId }
  const endpoint = (await listEndpoints(tx)).find(({ id }) => id === known.get(key)?.id)
  if (!endpoint) return null
  const alone = await findOwnPool(tx, endpoint.id)
  return alone === undefined ? { endpoint } : { poolId: alone }
}

/** A pool with this endpoint alone. An active one, if there are several. */
const findOwnPool = async (tx: Tx, endpointId: string): Promise<string | undefined> => {
  const members = Map.groupBy(await listMembers(tx), ({ poolId }) => poolId)
  const own = (await listPools(tx)).filter(({ id }) => {
    const [first, ...others] = members.get(id) ?? []
    return others.length === 0 && first?.endpointId === endpointId && first.isActive
  })
  return (own.find(({ isActive }) => isActive) ?? own[0])?.id
}

/** Creates a pool with this endpoint alone, named after it. */
export const createOwnPool = async (
  tx: Tx,
  { id, name }: EgressEndpointRow,
  doing: { actor: Actor; random: Random },
): Promise<string> => {
  const taken = new Set((await listPools(tx)).map((pool) => pool.name))
  let free = name
  for (let number = 2; taken.has(free); number++) free = `${name} ${number}`
  return (await createPool(tx, { name: free, endpointIds: [id], isActive: true }, doing)).id
}
