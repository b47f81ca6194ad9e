/** Groups repeated errors of a list, so that a retrying client takes one row. */
import type { LogEntry } from '../../src/model/log/request-log-entry.ts'

/** Groups adjacent requests that failed for the same client in the same way; others form their own groups. */
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
