/** API descriptions of automations. */
import type { WordsByRoute } from './words.ts'

const PAGE = '`{items, total, hasMore}`'
const RUN =
  '`{id, jobId, jobName, kind, model, reasoningEffort, trigger, status, scheduledFor, startedAt, finishedAt, accountId, errorCode, errorMessage, attemptCount, totalAccounts, completedAccounts, pendingAccounts, skippedAccounts, cycleKey}`'
const INVALID = [
  'invalid_schedule_type',
  'invalid_schedule_time',
  'invalid_schedule_timezone',
  'invalid_schedule_days',
  'invalid_schedule_threshold',
  'invalid_account_ids',
  'invalid_prompt',
  'invalid_model',
  'invalid_reasoning_effort',
] as const
const UNKNOWN = ['automation_not_found'] as const

export const AUTOMATION_WORDS: WordsByRoute = {
  'GET /api/automations': {
    does: 'Automations: small requests on chosen accounts at set times. The prompt is for users who may change them.',
    answer: `${PAGE}, items with \`nextRunAt\`, \`lastRun\` and \`accountScopeAll\`.`,
  },
  'GET /api/automations/options': {
    does: 'The values by which the list can be filtered.',
    answer: '`{accountIds, models, statuses, scheduleTypes}`',
  },
  'POST /api/automations': {
    does: 'Creates an automation.',
    answer: 'The automation.',
    throws: INVALID,
    example: {
      name: 'Start windows on working mornings',
      schedule: { time: '07:55', timezone: 'Europe/Berlin', days: ['mon', 'tue', 'wed', 'thu', 'fri'] },
    },
  },
  'PATCH /api/automations/:id': {
    does: 'Changes an automation. Times before the change are not run afterwards.',
    answer: 'The automation.',
    throws: [...UNKNOWN, ...INVALID],
    example: { enabled: false },
  },
  'DELETE /api/automations/:id': {
    does: 'Deletes an automation and its runs.',
    answer: '`{status: "deleted"}`',
    throws: UNKNOWN,
  },
  'POST /api/automations/:id/run-now': {
    does: 'Starts a run on all accounts of the automation. The answer does not wait for it.',
    answer: RUN,
    status: 202,
    throws: UNKNOWN,
  },
  'GET /api/automations/:id/runs': { does: 'The runs of one automation, newest first.', answer: PAGE, throws: UNKNOWN },
  'GET /api/automations/runs': { does: 'The runs of the last 90 days, newest first.', answer: PAGE },
  'GET /api/automations/runs/options': {
    does: 'The values by which runs can be filtered.',
    answer: '`{accountIds, models, statuses, triggers}`',
  },
  'GET /api/automations/runs/:id/details': {
    does: 'A run with what became of each account.',
    answer:
      '`{run, accounts: [{accountId, status, runId, scheduledFor, startedAt, finishedAt, errorCode, errorMessage}], totalAccounts, completedAccounts, pendingAccounts}`',
    throws: ['automation_run_not_found'],
  },
  'GET /settings/automations': { does: 'The automations and their runs.' },
  'GET /settings/automations/new': { does: 'Create an automation.' },
  'GET /settings/automations/:id': { does: 'One automation.', throws: UNKNOWN },
  'GET /settings/automations/runs/:id': { does: 'One run.', throws: ['automation_run_not_found'] },
}
