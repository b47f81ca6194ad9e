/** Repeated errors of a list, folded: what a client that retries leaves in the log reads as one row. */
import type { LogEntry } from '../../src/model/request-log-entry.ts'

/** Neighbours in the list that failed for the same client in the same way; anything else is a group of its own. */
export const groupRepeats = (requests: readonly LogEntry[]): LogEntry[][] => {
  const groups: LogEntry[][] = []
  for (const request of requests) {
    const group = groups.at(-1)
    const last = group?.at(-1)
    if (group && last && isRepeat(last, request)) group.push(request)
    else groups.push([request])
  }
  return groups
}

const isRepeat = (one: LogEntry, other: LogEntry): boolean =>
  isFailed(one) && isFailed(other) && SAME.every((name) => one[name] === other[name])

const isFailed = ({ status }: LogEntry): boolean => status !== 'ok' && status !== 'cancelled'

const SAME = ['apiKeyId', 'useragentGroup', 'model', 'cause', 'errorCode'] as const
