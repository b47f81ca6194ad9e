/** The exact time of a log row, without today's date. */
import type { FC } from 'hono/jsx'
import { momentText, sinceText, utcText } from '../ui/time.tsx'

interface LogTimeProps {
  /** ISO 8601 */
  at: string
  /** ISO 8601: when the page was made. */
  now: string
}

/** The tooltip says how long ago; the script updates it. */
export const LogTime: FC<LogTimeProps> = ({ at, now }) => (
  <time datetime={at} title={`${sinceText(at, now)} · ${utcText(at)}`} data-ago>
    {logTimeText(at, now)}
  </time>
)

/** "14:20:31", or "2026-01-10 14:20:31". */
export const logTimeText = (at: string, now: string): string => {
  const text = momentText(at)
  const today = momentText(now).slice(0, DAY_CHARS)
  return text.startsWith(today) ? text.slice(DAY_CHARS) : text
}

const DAY_CHARS = '2026-01-10 '.length
