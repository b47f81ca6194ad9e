/** A log of working days: one request per quarter of an hour from 09:00 to 18:00 UTC, Monday to Friday, before now. */
import { commit } from '../../db/commit.ts'
import { requests } from '../../db/schema/requests.ts'
import type { TestApp } from './app.ts'

const QUARTER = 900_000
const DAY = 96 * QUARTER

/** `units`: what each request uses, in thousands of tokens. */
export const logWorkdays = async (app: TestApp, { days, units }: { days: number; units: number }): Promise<void> => {
  const midnight = Math.floor(app.clock.now() / DAY) * DAY
  const slots = Array.from(
    { length: days * 36 },
    (_, n) => midnight - (Math.floor(n / 36) + 1) * DAY + (36 + (n % 36)) * QUARTER,
  )
  const worked = slots.filter((at) => ![0, 6].includes(new Date(at).getUTCDay()))
  const rows = worked.map((startedAt) => ({
    id: `workday-${startedAt}`,
    requestId: `workday-${startedAt}`,
    startedAt,
    route: '/v1/responses',
    kind: 'normal' as const,
    transport: 'http' as const,
    status: 'ok' as const,
    httpStatus: 200,
    attempts: 1,
    totalMs: 1000,
    accountId: app.members[0]?.id ?? null,
    model: 'gpt-5.5',
    inputTokens: units * 1000,
    cachedInputTokens: 0,
    outputTokens: 0,
  }))
  await commit(app.db, async (tx) => {
    for (let first = 0; first < rows.length; first += AT_ONCE)
      await tx
        .insert(requests)
        .values(rows.slice(first, first + AT_ONCE))
        .run()
  })
}

const AT_ONCE = 100
