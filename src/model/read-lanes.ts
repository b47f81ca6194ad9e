/** What the reader answers, by name, and in which of its threads: the queries themselves are loaded there. */

/** `slow` is what reads much of the file, whatever is asked: nothing else should wait behind it. */
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
} as const
