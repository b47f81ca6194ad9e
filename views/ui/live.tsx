/** What of a page is renewed by itself when something changed: the script fetches the page again and takes this part out of it. */
import type { Child, FC } from 'hono/jsx'
import type { LiveTopic } from '../../src/live.ts'

interface LiveProps {
  id: string
  /** Any of these has it fetched again. */
  topics: readonly LiveTopic[]
  /** Of the page, as it is shown. */
  src: string
}

/** The attributes of such a part. */
export const live = ({ id, topics, src }: LiveProps) => ({
  id,
  'data-live': topics.join(' '),
  'data-live-src': src,
  'data-live-pick': '',
})

export const LivePart: FC<LiveProps & { children?: Child }> = ({ children, ...props }) => (
  <div {...live(props)}>{children}</div>
)
