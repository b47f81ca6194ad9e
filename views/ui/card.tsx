/** A part of a page under a heading that names it. */
import type { Child, FC, PropsWithChildren } from 'hono/jsx'

interface CardProps {
  id: string
  title: string
  /** A number or a word beside the title. */
  count?: Child
  /** What else stands in the head: links, buttons. */
  aside?: Child
  class?: string
}

export const Card: FC<PropsWithChildren<CardProps>> = ({ id, title, count, aside, class: name, children }) => (
  <section class={name ? `card ${name}` : 'card'} id={id} aria-labelledby={`${id}-title`}>
    <header class="card-head">
      <h2 id={`${id}-title`}>{title}</h2>
      {count !== undefined && count !== null && <span class="count">{count}</span>}
      {aside}
    </header>
    {children}
  </section>
)

/** Its content is text or a form that keeps clear of the edges; lists and tables do not. */
export const TextCard: FC<PropsWithChildren<CardProps>> = ({ children, ...card }) => (
  <Card {...card}>
    <div class="card-body">{children}</div>
  </Card>
)
