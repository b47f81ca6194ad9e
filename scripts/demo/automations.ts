/** The demo's two automations and the results of their runs in the demo's week. */
import type { Tx } from '../../db/commit.ts'
import { DAY_MS } from '../../src/lib/durations.ts'
import { systemRandom } from '../../src/lib/random.ts'
import type { Actor } from '../../src/model/audit/audit.ts'
import { createAutomation, getSchedule } from '../../src/model/automations/automations.ts'
import { claimSlot, endAccount, type Note } from '../../src/model/automations/runs.ts'
import { latestSlot } from '../../src/model/automations/schedule.ts'

const WORKING_DAYS = ['mon', 'tue', 'wed', 'thu', 'fri'] as const
const SAME = {
  ...{ enabled: true, model: null, effort: null, prompt: 'ping', includePaused: false, accountIds: null },
  zone: 'Europe/Berlin',
}
const DAYS = 6
const ANSWER_MS = 1400

/** Account name → why it is skipped. */
const SKIPPED: Readonly<Record<string, Note>> = {
  linus: { code: 'account_rate_limited', message: null },
  tony: { code: 'account_paused', message: null },
  barbara: { code: 'account_needs_sign_in', message: null },
}

export const addAutomations = async (
  tx: Tx,
  { accountIds, actor, now }: { accountIds: ReadonlyMap<string, string>; actor: Actor; now: number },
): Promise<void> => {
  const doing = { actor, random: systemRandom }
  const mornings = await createAutomation(
    tx,
    {
      ...SAME,
      name: 'Start windows on working mornings',
      kind: 'ping',
      time: '07:55',
      days: [...WORKING_DAYS],
      spreadMinutes: 0,
    },
    doing,
  )
  const nightly = await createAutomation(
    tx,
    {
      ...SAME,
      name: 'Nightly check',
      kind: 'probe',
      time: '03:00',
      days: [...WORKING_DAYS, 'sat', 'sun'],
      spreadMinutes: 60,
    },
    doing,
  )
  const slots = [mornings, nightly].flatMap((automation) =>
    Array.from({ length: DAYS }, (_, day) => latestSlot(getSchedule(automation), now - day * DAY_MS))
      .filter((slot) => slot !== null)
      .map((slot) => ({ automation, slot })),
  )
  for (const { automation, slot } of slots.toSorted((a, b) => a.slot - b.slot)) {
    const run = await claimSlot(tx, slot, {
      ...{ automation, accountIds: [...accountIds.values()], now: slot, random: systemRandom },
    })
    for (const [name, accountId] of run ? accountIds : []) {
      const ended = SKIPPED[name] ?? null
      const at = (run?.accounts.find((one) => one.accountId === accountId)?.scheduledFor ?? slot) + ANSWER_MS
      if (run) await endAccount(tx, run.id, { accountId, now: at, status: ended ? 'skipped' : 'success', ended })
    }
  }
}
