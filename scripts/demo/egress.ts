/** The demo's outbound proxies: one pool, used by an account that serves no requests, because no proxy listens there. */

import type { Tx } from '../../db/commit.ts'
import { mapInOrder } from '../../src/lib/in-order.ts'
import type { Random } from '../../src/lib/random.ts'
import type { Sealer } from '../../src/lib/seal.ts'
import type { Actor } from '../../src/model/audit/audit.ts'
import { createEndpoint, recordTest } from '../../src/model/egress/endpoints.ts'
import { NewEndpoint } from '../../src/model/egress/input.ts'
import { bindAccount, createPool } from '../../src/model/egress/pools.ts'

const PROXIES = [
  {
    name: 'Frankfurt',
    scheme: 'socks5h',
    host: '10.20.0.31',
    port: 1080,
    username: 'sluice',
    password: 'made-up',
    result: { ok: true, statusCode: 200, elapsedMs: 184, exitAddress: '198.51.100.24', error: null },
  },
  {
    name: 'Amsterdam',
    scheme: 'http',
    host: '10.20.0.32',
    port: 3128,
    result: {
      ok: false,
      statusCode: null,
      elapsedMs: 8000,
      exitAddress: null,
      error: 'The proxy did not answer within 8 s.',
    },
  },
]

interface Doing {
  actor: Actor
  random: Random
  sealer: Sealer
  /** The account that uses the pool. */
  accountId: string
  /** ms since epoch */
  testedAt: number
}

export const addEgress = async (tx: Tx, { actor, random, sealer, accountId, testedAt }: Doing): Promise<void> => {
  const rows = await mapInOrder(PROXIES, async ({ result, ...input }) => {
    const row = await createEndpoint(tx, NewEndpoint.parse(input), { actor, random, sealer })
    await recordTest(tx, row, { at: testedAt, ...result }, { ...actor, at: testedAt })
    return row
  })
  const endpointIds = rows.map(({ id }) => id)
  const pool = await createPool(tx, { name: 'Europe', endpointIds, isActive: true }, { actor, random })
  await bindAccount(tx, accountId, pool.id, actor)
}
