/** The reader's queries by name, and the thread for each; the threads load the queries themselves. */

/** `slow` queries read much of the file, so that others should not wait behind them. */
export const READ_LANES = {
  overviewBegin: 'quick',
  overviewSlots: 'quick',
  overviewPresent: 'quick',
  keyWeek: 'quick',
  requestLogs: 'quick',
  requestLog: 'quick',
  requestLogOptions: 'quick',
  newRequests: 'quick',
  logHistogram: 'quick',
  rejectedHistogram: 'quick',
  rejectedPage: 'quick',
  report: 'slow',
  reportBars: 'slow',
  reportCsv: 'slow',
  recentCallers: 'slow',
  auditLog: 'quick',
  auditVerdict: 'slow',
  tableSizes: 'slow',
  accountTrend: 'quick',
  accountSpend: 'quick',
  accountHistory: 'quick',
  fleetActivity: 'slow',
  stickySessions: 'quick',
  countSticky: 'quick',
} as const
