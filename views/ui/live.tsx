/** A part of a page that refreshes after changes: the script reloads the page and takes this part from it. */
import type { Child, FC } from 'hono/jsx'
import type { LiveTopic } from '../../src/live.ts'

interface LiveProps {
  id: string
  /** Any of these topics triggers a reload. */
  topics: readonly LiveTopic[]
  /** The current page's URL. */
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
