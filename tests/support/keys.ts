/** Readable rows for tests about API keys: an actor, a log row, an account. */
import { commit, type Db } from '../../db/commit.ts'
import { accounts } from '../../db/schema/accounts.ts'
import { requests } from '../../db/schema/requests.ts'
import { seededRandom } from '../../src/lib/random.ts'
import type { Actor } from '../../src/model/audit/audit.ts'
import { createKey, type IssuedKey } from '../../src/model/keys/api-keys.ts'
import { NewKey } from '../../src/model/keys/key-input.ts'

export const anActor = (at: number): Actor => ({ id: 'bootstrap', method: 'bootstrap', address: '127.0.0.1', at })

/** Creates a key as the dashboard would: the input is validated by the schema. */
export const aKey = (db: Db, input: Record<string, unknown> = {}, { at = 0, seed = 1 } = {}): Promise<IssuedKey> =>
  commit(db, (tx) =>
    createKey(tx, NewKey.parse({ name: 'laptop', ...input }), {
      scope: 'all',
      actor: anActor(at),
      random: seededRandom(seed),
    }),
  )

export const anAccountRow = async (db: Db, id: string): Promise<void> => {
  const sealed = { accessTokenSealed: '', refreshTokenSealed: '', idTokenSealed: '' }
  await commit(db, (tx) =>
    tx
      .insert(accounts)
      .values({ id, email: `${id}@example.com`, planType: 'plus', lastRefreshAt: 0, createdAt: 0, ...sealed })
      .run(),
  )
}

type RequestRow = typeof requests.$inferInsert

export const aRequestRow = async (
  db: Db,
  row: Partial<RequestRow> & Pick<RequestRow, 'id' | 'keyId' | 'startedAt'>,
): Promise<void> => {
  const usual = {
    requestId: row.id,
    route: '/v1/responses',
    kind: 'normal',
    transport: 'http',
    model: 'strong',
  } as const
  const outcome = { status: 'ok', httpStatus: 200, attempts: 1, totalMs: 1 } as const
  await commit(db, (tx) =>
    tx
      .insert(requests)
      .values({ ...usual, ...outcome, ...row })
      .run(),
  )
}
