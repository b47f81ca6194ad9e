/** The red line at the top of every page while a capture runs. Empty otherwise, so that it can appear without a reload. */
import type { FC } from 'hono/jsx'
import { ClockTime } from './ui/time.tsx'

export interface CaptureNotice {
  running: number
  /** ISO 8601: when the last one ends. */
  endsAt: string
  /** The user may open the list. */
  hasLink: boolean
}

export interface CaptureLineProps {
  notice: CaptureNotice | null
  /** The script keeps it up to date. */
  isLive: boolean
  /** ISO 8601 */
  now: string
}

export const CaptureLine: FC<CaptureLineProps> = ({ notice, isLive, now }) => (
  <p id="capture-line" role="status" {...(isLive && { 'data-live': 'health', 'data-live-src': '/capture-line' })}>
    {notice && (
      <span>
        Capture running until <ClockTime at={notice.endsAt} now={now} />. Requests and answers of{' '}
        {notice.running === 1 ? 'a key or an account' : `${notice.running} keys or accounts`} are stored in full.{' '}
        {notice.hasLink && <a href="/logs/captures">Show captures</a>}
      </span>
    )}
  </p>
)
