/** A name and value of a definition list. */
import type { FC, PropsWithChildren } from 'hono/jsx'

export const Fact: FC<PropsWithChildren<{ name: string }>> = ({ name, children }) => (
  <>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </>
)
