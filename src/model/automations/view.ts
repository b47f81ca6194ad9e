/** Automations and runs as the API shows them. */
import type { RunAccount } from '../../../db/schema/automations.ts'
import { iso, isoOrNull } from '../../lib/iso.ts'
import { type AutomationRow, getSchedule } from './automations.ts'
import type { RunRow } from './runs.ts'
import { nextSlot } from './schedule.ts'

/** What the user may not see. */
export interface AutomationHiddenFields {
  /** Prompts are contents: for users who may change automations. */
  hidesPrompt: boolean
  /** Messages that ChatGPT may have written. */
  hidesMessages: boolean
}

/** Texts of codes that are not errors of a request. */
const NOTES: Readonly<Record<string, string>> = {
  missed: 'Skipped: Sluice was not running or too busy at the scheduled time, and it was more than an hour ago.',
  no_accounts: 'No account was available.',
  interrupted: 'Sluice stopped or lost the database before the answer was stored. The request is not repeated.',
  automation_disabled: 'Skipped: the automation was turned off.',
  account_not_found: 'Skipped: the account was deleted.',
  account_rate_limited: 'Skipped: the account was rate limited.',
  account_quota_exceeded: 'Skipped: the account was out of quota.',
  account_paused: 'Skipped: the account was paused.',
  account_needs_sign_in: 'Skipped: the account needs sign-in.',
  account_deactivated: 'Skipped: the account was deactivated.',
}

const getMessage = (
  { errorCode, errorMessage }: Pick<RunAccount, 'errorCode' | 'errorMessage'>,
  { hidesMessages }: AutomationHiddenFields,
): string | null => NOTES[errorCode ?? ''] ?? (hidesMessages ? null : errorMessage)

export interface Shown {
  row: AutomationRow
  /** Null: it has not run. */
  lastRun: RunRow | null
}

export const toAutomation = ({ row, lastRun }: Shown, now: number, hiddenFields: AutomationHiddenFields) => {
  const next = row.enabled ? nextSlot(getSchedule(row), now) : null
  return {
    id: row.id,
    name: row.name,
    kind: row.kind,
    enabled: row.enabled,
    includePausedAccounts: row.includePaused,
    schedule: {
      type: 'daily' as const,
      time: row.time,
      timezone: row.zone,
      thresholdMinutes: row.spreadMinutes,
      days: row.days,
    },
    model: row.model,
    reasoningEffort: row.effort,
    prompt: hiddenFields.hidesPrompt ? null : row.prompt,
    accountIds: row.accountIds ?? [],
    accountScopeAll: row.accountIds === null,
    createdAt: iso(row.createdAt),
    updatedAt: iso(row.updatedAt),
    nextRunAt: isoOrNull(next),
    lastRun: lastRun && toRun({ run: lastRun, name: row.name }, hiddenFields),
  }
}
export type AutomationView = ReturnType<typeof toAutomation>

export interface NamedRun {
  run: RunRow
  /** The name of the automation. */
  name: string
}

export const toRun = ({ run, name }: NamedRun, hiddenFields: AutomationHiddenFields) => {
  const { accounts } = run
  const [only] = accounts
  const error = run.errorCode === null ? accounts.find(({ status }) => status === 'failed') : run
  const pending = getCount(accounts, ['pending', 'running'])
  return {
    id: run.id,
    jobId: run.automationId,
    jobName: name,
    kind: run.kind,
    model: run.model,
    reasoningEffort: run.effort,
    trigger: run.trigger,
    status: run.status,
    effectiveStatus: run.status,
    scheduledFor: iso(run.slot ?? run.startedAt),
    startedAt: iso(run.startedAt),
    finishedAt: isoOrNull(run.finishedAt),
    accountId: only && accounts.length === 1 ? only.accountId : null,
    errorCode: error?.errorCode ?? null,
    errorMessage: error ? getMessage(error, hiddenFields) : null,
    attemptCount: accounts.filter(({ startedAt }) => startedAt !== null).length,
    totalAccounts: accounts.length,
    completedAccounts: accounts.length - pending,
    pendingAccounts: pending,
    skippedAccounts: getCount(accounts, ['skipped']),
    cycleKey: `${run.automationId}:${run.slot ?? run.id}`,
  }
}
export type RunView = ReturnType<typeof toRun>

const getCount = (accounts: readonly RunAccount[], statuses: readonly RunAccount['status'][]): number =>
  accounts.filter(({ status }) => statuses.includes(status)).length

export const toRunDetails = (named: NamedRun, hiddenFields: AutomationHiddenFields) => {
  const run = toRun(named, hiddenFields)
  return {
    run,
    accounts: named.run.accounts.map((one) => ({
      accountId: one.accountId,
      status: one.status,
      runId: run.id,
      scheduledFor: iso(one.scheduledFor),
      startedAt: isoOrNull(one.startedAt),
      finishedAt: isoOrNull(one.finishedAt),
      errorCode: one.errorCode,
      errorMessage: getMessage(one, hiddenFields),
    })),
    totalAccounts: run.totalAccounts,
    completedAccounts: run.completedAccounts,
    pendingAccounts: run.pendingAccounts,
  }
}
export type RunDetails = ReturnType<typeof toRunDetails>
