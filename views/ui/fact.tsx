/** One fact of a definition list: what is asked, and what is so. */
import type { FC, PropsWithChildren } from 'hono/jsx'

export const Fact: FC<PropsWithChildren<{ name: string }>> = ({ name, children }) => (
  <>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </>
)
